/**
 * Orders two resourceVersions: negative when `a` is older. They are decimal integers of any length (KEP-5504), so no
 * conversion is needed. Undefined when either is something else, as some aggregated API servers send.
 */
export function compareResourceVersions(a: string | undefined, b: string | undefined): number | undefined {
  if (a === b && a !== undefined) {
    return 0;
  }
  if (a === undefined || b === undefined || !isDecimal(a) || !isDecimal(b)) {
    return undefined;
  }
  if (a.length !== b.length) {
    return a.length - b.length;
  }
  return a < b ? -1 : 1;
}

/** True only when both are comparable and `a` is older than `b`. */
export function isOlder(a: string | undefined, b: string | undefined): boolean {
  const order = compareResourceVersions(a, b);
  return order !== undefined && order < 0;
}

function isDecimal(text: string): boolean {
  if (text.length === 0 || text.charCodeAt(0) === 0x30) {
    return false;
  }
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x30 || code > 0x39) {
      return false;
    }
  }
  return true;
}
