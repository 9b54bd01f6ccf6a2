// Tables as comma-separated values (RFC 4180), exact: what is decimal text here is the same text there.

export function csv(head: string[], rows: string[][]): string {
  return [head, ...rows].map((cells) => cells.map(cell).join(",")).join("\r\n") + "\r\n";
}

function cell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Nanoseconds since the epoch as ISO 8601 in UTC, to the nanosecond. */
export function isoTime(timeNs: string): string {
  const ns = BigInt(timeNs);
  const seconds = new Date(Number(ns / 1_000_000n)).toISOString().slice(0, 19);
  return `${seconds}.${(ns % 1_000_000_000n).toString().padStart(9, "0")}Z`;
}

/** Hands a file to the user. */
export function download(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
