// Whether an order has ended.

const ENDED = new Set(["filled", "cancelled", "expired", "rejected"]);

/** Whether the venue says that an order ended, or that nothing of it is open. */
export function hasEnded({ status, open }: { status: string; open?: string }): boolean {
  return ENDED.has(status) || (open !== undefined && !/[1-9]/.test(open));
}
