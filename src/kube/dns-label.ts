const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** An RFC 1123 label, which names of namespaces, Services and containers are. */
export function isDnsLabel(text: string): boolean {
  return LABEL.test(text);
}
