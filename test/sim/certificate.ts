import { issueServingCertificate, newAuthority } from '../../src/kube/certificate-authority.ts';
import { EPOCH, FILES } from './simulation.ts';

/** Longer than any history. */
const LIFE_MS = 10 * 365 * 24 * 3_600_000;

/** Puts the files there that every process finds. To be called once, before anything is simulated: making keys takes real time. */
export async function installFiles(): Promise<{ ca: string }> {
  const authority = await newAuthority('simulated', EPOCH, LIFE_MS);
  const pair = await issueServingCertificate(authority, ['10.0.0.1'], EPOCH, LIFE_MS);
  FILES.set('/sim/tls.crt', pair.cert);
  FILES.set('/sim/tls.key', pair.key);
  FILES.set(
    '/sim/host.kubeconfig',
    kubeconfig('https://host:6443', Buffer.from(authority.cert).toString('base64'), 'the manager'),
  );
  return { ca: Buffer.from(authority.cert).toString('base64') };
}

export function kubeconfig(server: string, ca: string, token: string): string {
  return JSON.stringify({
    clusters: [{ name: 'c', cluster: { server, 'certificate-authority-data': ca } }],
    users: [{ name: 'u', user: { token: token.replaceAll(' ', '-') } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  });
}
