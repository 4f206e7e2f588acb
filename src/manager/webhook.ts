import { CaBundleKeeper } from '../admission/ca-bundle-keeper.ts';
import { admissionMetrics } from '../admission/metrics.ts';
import { SharedCertificates } from '../serving/shared-certificates.ts';
import { WebhookServer } from '../admission/webhook-server.ts';
import { MEMBER_CLUSTERS, parseMemberCluster, virtualNodesOf } from '../api/member-cluster.ts';
import type { ManagerConfig } from '../config.ts';
import type { HostServices } from './host-services.ts';
import { Informer } from '../kube/informer.ts';
import type { KeyedCertificate } from '../kube/keyed-certificate.ts';
import type { KubeObject } from '../kube/object.ts';
import { pause } from '../kube/timers.ts';
import { ClientCa } from '../serving/client-ca.ts';
import { FileCertificates } from '../serving/file-certificates.ts';

type Services = Pick<HostServices, 'config' | 'host' | 'registry' | 'informerMetrics' | 'logger'>;
type WebhookConfig = ManagerConfig['admission']['webhook'];

/** Between two looks at whether there is a certificate yet, in ms. */
const CERTIFICATE_POLL_MS = 50;
const NODE_NAME = 'node';

interface Certificates {
  current: () => KeyedCertificate | undefined;
  run: (signal: AbortSignal) => Promise<unknown>;
}

/**
 * The webhook that gives pods what they need to leave the host, until the signal aborts; nothing where it is not enabled.
 * Every replica serves it.
 *
 * @throws when its port cannot be had or its files cannot be used.
 */
export async function runPodWebhook(services: Services, signal: AbortSignal): Promise<void> {
  const { config, host, registry, informerMetrics } = services;
  const { webhook, schedulerName, splitNodeConstraints } = config.admission;
  const metrics = admissionMetrics(registry);
  if (!webhook.enabled) return;
  const logger = services.logger.child({ part: 'pod-webhook' });
  const members = new Informer<KubeObject>({
    client: host,
    resource: MEMBER_CLUSTERS,
    indexes: { [NODE_NAME]: nodeNamesOf },
    logger,
    metrics: informerMetrics,
  });
  const { clientCaFile } = webhook;
  const clientCa = clientCaFile === undefined ? undefined : ClientCa.fromFile(clientCaFile, logger);
  await clientCa?.load(signal);
  const certificates = await certificatesFor(webhook, { ...services, logger });
  const running = Promise.all([certificates.run(signal), members.run(signal), clientCa?.run(signal)]);
  const first = await untilThere(certificates, signal);
  if (first !== undefined) {
    const server = new WebhookServer({
      address: webhook.bindAddress,
      port: webhook.port,
      certificate: () => certificates.current() ?? first,
      clientCa: clientCa === undefined ? undefined : () => clientCa.current(),
      settings: {
        schedulerName,
        isVirtualNode: (name) => members.byIndex(NODE_NAME, name).length > 0,
        splitConstraints: splitNodeConstraints,
        outages: config.outages,
      },
      metrics,
      logger,
    });
    await server.listen();
    await untilAborted(signal);
    await server.close(1000);
  }
  await running;
}

async function certificatesFor(
  { certificate, configuration }: WebhookConfig,
  services: Services,
): Promise<Certificates> {
  const { config, host, logger } = services;
  if (certificate.mode === 'Files') {
    const files = await FileCertificates.open({ ...certificate, logger });
    return { current: () => files.current(), run: async (signal) => await files.run(signal) };
  }
  const names = certificate.names.length > 0 ? certificate.names : [`spillway-webhook.${config.namespace}.svc`];
  const secret = { namespace: config.namespace, name: certificate.secretName };
  const purpose = () => ({ authority: 'spillway-webhook-ca', names });
  const shared = new SharedCertificates({ host, owner: 'the webhook', secret, purpose, logger, clock: Date.now });
  const keeper = new CaBundleKeeper({ host, configuration, bundle: () => shared.bundle(), logger });
  shared.onChange(() => keeper.trigger());
  return {
    current: () => shared.current(),
    run: async (signal) => await Promise.all([shared.run(signal), keeper.run(signal)]),
  };
}

async function untilThere(certificates: Certificates, signal: AbortSignal): Promise<KeyedCertificate | undefined> {
  while (!signal.aborted) {
    const current = certificates.current();
    if (current !== undefined) return current;
    await pause(CERTIFICATE_POLL_MS, signal);
  }
  return undefined;
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function nodeNamesOf(raw: KubeObject): readonly string[] {
  const parsed = parseMemberCluster(raw);
  return 'member' in parsed ? virtualNodesOf(parsed.member).map(({ name }) => name) : [];
}
