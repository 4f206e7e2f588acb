import { pino } from 'pino';
import { SelfSignedCertificates } from '../../src/serving/self-signed-certificates.ts';
import { EPOCH, FILES } from './simulation.ts';

/** Puts the files there that every process finds. To be called once, before anything is simulated: making keys takes real time. */
export async function installFiles(): Promise<{ ca: string }> {
  const pair = (
    await SelfSignedCertificates.create({
      node: { nodeName: 'simulated', addresses: ['10.0.0.1'] },
      logger: pino({ level: 'silent' }),
      clock: () => EPOCH,
    })
  ).current();
  FILES.set('/sim/tls.crt', pair.cert);
  FILES.set('/sim/tls.key', pair.key);
  FILES.set(
    '/sim/host.kubeconfig',
    kubeconfig('https://host:6443', Buffer.from(pair.cert).toString('base64'), 'the manager'),
  );
  return { ca: Buffer.from(pair.cert).toString('base64') };
}

export function kubeconfig(server: string, ca: string, token: string): string {
  return JSON.stringify({
    clusters: [{ name: 'c', cluster: { server, 'certificate-authority-data': ca } }],
    users: [{ name: 'u', user: { token: token.replaceAll(' ', '-') } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  });
}
