import { isIP } from 'node:net';
import type { KeyedCertificate } from '../kube/keyed-certificate.ts';

/**
 * Where a kubelet server's serving certificate comes from. `run` obtains the first one and keeps it fresh until the
 * signal aborts; it never rejects. The server asks `current` before each handshake, so a new one needs no restart and
 * open streams never notice.
 */
export interface ServingCertificates {
  current(): KeyedCertificate;
  run(signal: AbortSignal): Promise<void>;
}

/** How a certificate names the virtual node: what the host's API server dials must be among them. */
export interface NodeAddresses {
  readonly nodeName: string;
  /** IP addresses and DNS names; at least one. */
  readonly addresses: readonly string[];
}

export function subjectAlternativeNames(addresses: readonly string[]): { type: 'ip' | 'dns'; value: string }[] {
  return addresses.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value }));
}
