import type { Logger } from 'pino';
import type { HostServices } from './host-services.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ServingCertificates } from '../serving/certificates.ts';
import { CsrCertificates } from '../serving/csr-certificates.ts';
import { FileCertificates } from '../serving/file-certificates.ts';
import { SelfSignedCertificates } from '../serving/self-signed-certificates.ts';

/** What the kubelet port of a virtual node shows, as the configuration says. */
export async function servingCertificates(
  services: Pick<HostServices, 'config' | 'nodeAddress'>,
  { host, nodeName, logger }: { host: KubeClient; nodeName: string; logger: Logger },
): Promise<ServingCertificates> {
  const node = { nodeName, addresses: [services.nodeAddress] };
  const { servingCertificate } = services.config.kubelet;
  const clock = Date.now;
  switch (servingCertificate.mode) {
    case 'Files':
      return await FileCertificates.open({ ...servingCertificate, logger });
    case 'Csr':
      return await CsrCertificates.create({ host, node, logger, clock });
    case 'SelfSigned':
      return await SelfSignedCertificates.create({ node, logger, clock });
  }
}
