import type { Condition } from '../../kube/core-v1.ts';
import type { KubeObject } from '../../kube/object.ts';
import { failed, ok, warning, type Finding } from './finding.ts';

type SigningRequest = KubeObject & {
  spec?: { signerName?: string; username?: string };
  status?: { certificate?: string; conditions?: Condition[] };
};

/** A request that nobody has looked at for so long waits for somebody, in ms. */
const UNANSWERED_MS = 20_000;

interface CertificateFacts {
  requests: readonly KubeObject[];
  /** Names of virtual nodes. */
  nodes: ReadonlySet<string>;
  /** The API server reaches the ports of virtual nodes as it is; undefined: not known. */
  portsWork: boolean | undefined;
  /** Of the API server, in ms. */
  now: number;
}

/** Whether requests of virtual nodes for certificates are approved and signed; of several for one purpose the newest counts. */
export function certificatesIssued({ requests, nodes, portsWork, now }: CertificateFacts): Finding[] {
  const check = 'certificates';
  const page = 'security.md';
  const findings = newestOf(requests as readonly SigningRequest[], nodes).flatMap(
    ({ metadata, spec, status }): Finding[] => {
      const { signerName = '' } = spec ?? {};
      const request = `${metadata.name} (${signerName})`;
      const is = (type: string): Condition | undefined =>
        status?.conditions?.find((one) => one.type === type && one.status !== 'False');
      const refused = is('Denied') ?? is('Failed');
      if (refused !== undefined) {
        const says = `${request} was refused: ${refused.message ?? refused.reason ?? ''}`;
        return [failed(check, says, 'find out who refused it: an approver of this cluster, or its signer', page)];
      }
      const waits = now - Date.parse(metadata.creationTimestamp ?? '') > UNANSWERED_MS;
      if (!waits || (status?.certificate ?? '') !== '') return [];
      if (is('Approved') !== undefined) {
        const fix =
          'see that the signer runs in this cluster, or set kubelet.servingCertificate in the configuration of the manager';
        return [failed(check, `${request} is approved, and nobody has signed it`, fix, page)];
      }
      const isServing = signerName === 'kubernetes.io/kubelet-serving';
      const effect = isServing
        ? 'logs and exec of its pods fail where the API server checks certificates of kubelets'
        : 'its virtual node does its work with the rights of the manager, or not at all';
      const found = isServing && portsWork === true ? warning : failed;
      const says = `${request} waits for an approval; until then ${effect}`;
      return [found(check, says, `kubectl certificate approve ${metadata.name}`, page)];
    },
  );
  return findings.length > 0 ? findings : [ok(check, 'no request of a virtual node is left unanswered')];
}

function newestOf(requests: readonly SigningRequest[], nodes: ReadonlySet<string>): SigningRequest[] {
  const newest = new Map<string, SigningRequest>();
  for (const request of requests) {
    // Names are made of the node and five random characters.
    const node = /^spillway-(.*)-[a-z0-9]{5}$/.exec(request.metadata.name)?.[1];
    if (node === undefined || !nodes.has(node)) continue;
    const purpose = `${node} ${request.spec?.signerName ?? ''}`;
    const other = newest.get(purpose)?.metadata.creationTimestamp ?? '';
    if ((request.metadata.creationTimestamp ?? '') >= other) newest.set(purpose, request);
  }
  return [...newest.values()];
}

/** How the API server of the host reached the port of a virtual node. */
export interface PortAnswer {
  node: string;
  /** Undefined: it did. */
  error: string | undefined;
}

/** Whether kubectl logs and exec can work: the API server itself asked each virtual node whether it is well. */
export function portsReached(answers: readonly PortAnswer[]): Finding[] {
  const check = 'kubelet ports';
  const findings = answers.flatMap(({ node, error }): Finding[] => {
    if (error === undefined) return [];
    const isTrust = /x509|certificate|tls:/.test(error);
    const isTime = /has expired|not yet valid/.test(error);
    const fix = isTime
      ? 'the manager renews it by itself: see that the clocks of its node and of this API server agree, and in its log why it was not renewed'
      : isTrust
        ? 'approve the request for its serving certificate (see certificates), or give the manager one that this API server trusts'
        : 'let the API server reach the address and ports of the manager (kubelet.bindAddress, kubelet.firstPort, firewalls)';
    return [failed(check, `the API server does not reach ${node}: ${error}`, fix, 'security.md')];
  });
  return findings.length > 0 || answers.length === 0
    ? findings
    : [ok(check, 'the API server reaches every virtual node')];
}
