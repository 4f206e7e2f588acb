import type { Logger } from 'pino';
import { MEMBER_LABEL, NODE_LABEL } from '../api/marks.ts';
import type { HostServices } from './host-services.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ServingCertificates } from '../serving/certificates.ts';
import { CsrCertificates } from '../serving/csr-certificates.ts';
import { FileCertificates } from '../serving/file-certificates.ts';
import { SelfSignedCertificates } from '../serving/self-signed-certificates.ts';

/** What the kubelet port of a virtual node shows, as the configuration says. */
export async function servingCertificates(
  services: Pick<HostServices, 'config' | 'nodeAddress'>,
  { host, member, nodeName, logger }: { host: KubeClient; member: string; nodeName: string; logger: Logger },
): Promise<ServingCertificates> {
  const node = { nodeName, addresses: [services.nodeAddress] };
  const { servingCertificate } = services.config.kubelet;
  const labels = { [MEMBER_LABEL]: member, [NODE_LABEL]: nodeName };
  const clock = Date.now;
  switch (servingCertificate.mode) {
    case 'Files':
      return await FileCertificates.open({ ...servingCertificate, logger });
    case 'Csr':
      return await CsrCertificates.create({ host, node, labels, logger, clock });
    case 'SelfSigned':
      return await SelfSignedCertificates.create({ node, logger, clock });
  }
}
