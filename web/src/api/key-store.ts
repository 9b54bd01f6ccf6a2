// Where the page's key lives: this tab's session storage, nowhere else. It arrives in the address's fragment, which browsers do
// not send to servers, and is taken out of the address at once.


import { type Key, parseKey } from "walras";

const STORED = "walras.key";

/** The key from `#demo=...`, else the tab's own. An unusable one in the address throws, after the address is cleaned. */
export function takeKey(): Key | null {
  const fragment = location.hash;
  if (fragment.startsWith("#demo=")) {
    history.replaceState(null, "", location.pathname + location.search);
    const key = parseKey(decodeURIComponent(fragment.slice("#demo=".length)));
    keepKey(key);
    return key;
  }
  const stored = sessionStorage.getItem(STORED);
  return stored === null ? null : parseKey(stored);
}

export function keepKey(key: Key): void {
  sessionStorage.setItem(STORED, `${key.id}.${key.secret}`);
}

export function forgetKey(): void {
  sessionStorage.removeItem(STORED);
}
