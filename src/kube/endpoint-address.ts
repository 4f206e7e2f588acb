import { z } from 'zod';

/** Longest text of an IP address. */
const MAX_LENGTH = 45;

/**
 * Whether it is an address that an endpoint can have: none that is unspecified, loopback, link-local or multicast, nor one of IPv4 written as
 * IPv6. Kubernetes refuses a whole EndpointSlice for one (ValidateNonSpecialIP), and its controller then writes no change of that Service.
 */
export function isEndpointAddress(text: string): boolean {
  if (!isPlainAddress(text)) return false;
  if (!text.includes(':')) return !/^(0|127|169\.254|22[4-9]|23\d)\./.test(text);
  // All of these have a first group of their own; that of ::, ::1 and ::ffff:0:0/96 is 0.
  const first = text.startsWith('::') ? 0 : Number.parseInt(text, 16);
  return first !== 0 && (first & 0xffc0) !== 0xfe80 && (first & 0xff00) !== 0xff00;
}

/** An IP address, without a zone. */
export function isPlainAddress(text: string): boolean {
  return text.length <= MAX_LENGTH && (z.regexes.ipv4.test(text) || z.regexes.ipv6.test(text));
}
