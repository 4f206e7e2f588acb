import { stringify } from 'yaml';
import { z } from 'zod';
import { managerConfigSchema } from '../src/config.ts';
import { DEFAULT_CHOICES } from '../src/cli/installation.ts';
import { manifestObjects } from '../src/cli/manifests.ts';

const { outages, descheduler, scheduler, kubelet, forceLeaveSeconds, logLevel } = managerConfigSchema.shape;

/** What of the manager's configuration the chart leaves open: not what must fit to other objects, such as ports. */
const config = z.strictObject({
  outages: outages.optional(),
  descheduler: descheduler.optional(),
  scheduler: scheduler.unwrap().pick({ scoring: true, clientNames: true }).partial().optional(),
  kubelet: z
    .strictObject({
      servingCertificate: z.strictObject({ mode: z.enum(['SelfSigned', 'Csr']) }).describe(describe(kubelet)),
    })
    .optional(),
  forceLeaveSeconds: forceLeaveSeconds.optional(),
  logLevel: logLevel.optional(),
});

/** JSON of Kubernetes itself, which the API server judges. */
const anyObject = z.record(z.string(), z.unknown());

const valuesSchema = z.strictObject({
  image: z.string().min(1).default(DEFAULT_CHOICES.image).describe('Of the manager: one that you built or trust.'),
  imagePullSecrets: z
    .array(z.strictObject({ name: z.string().min(1) }))
    .default([])
    .describe('Secrets of namespace spillway-system with which images are pulled.'),
  replicas: z
    .int()
    .min(1)
    .max(100)
    .default(DEFAULT_CHOICES.replicas)
    .describe('Of the manager, and of the second scheduler.'),
  scheduler: z
    .enum(['Second', 'Own'])
    .default(DEFAULT_CHOICES.scheduler)
    .describe(
      "Which kube-scheduler asks Spillway: a Second one that comes with it, or the cluster's Own, which you tell to (docs/guides/scheduling.md).",
    ),
  schedulerImage: z
    .string()
    .default(DEFAULT_CHOICES.schedulerImage)
    .describe('Of the second scheduler. Default: kube-scheduler in the version of the cluster.'),
  admission: z
    .enum(['Auto', 'Policies', 'Webhook'])
    .default('Auto')
    .describe(
      'How pods get what they need to leave: Policies of the API server, which need Kubernetes 1.36, or a Webhook of the manager. Auto: by the version of the cluster.',
    ),
  hostIdentity: z
    .enum(['Auto', 'ServiceAccount'])
    .default(DEFAULT_CHOICES.hostIdentity)
    .describe('ServiceAccount where the cluster signs no certificates for nodes (docs/security.md).'),
  multiCluster: z
    .enum(['None', 'Exchange'])
    .default(DEFAULT_CHOICES.multiCluster)
    .describe(
      'Exchange: members may exchange Services with the host by the Multi-Cluster Services API (docs/concepts/multi-cluster-services.md), which takes further rights.',
    ),
  crds: z
    .strictObject({
      install: z.boolean().default(true).describe('False where something else applies manifests/crds.'),
      multiCluster: z
        .boolean()
        .default(true)
        .describe('With multiCluster: Exchange, the upstream kinds. False where the cluster has them already.'),
    })
    .prefault({})
    .describe(
      'The kinds of Spillway (install) and, with multiCluster: Exchange, the upstream ones of ServiceExports and ServiceImports (multiCluster; false where the cluster has them already). They are upgraded with the release, and stay when it is uninstalled.',
    ),
  monitoring: z
    .strictObject({
      podMonitor: z.boolean().default(false).describe('Have the Prometheus operator scrape the manager.'),
      alerts: z.boolean().default(false).describe('A PrometheusRule with the alerts of docs/runbooks.md.'),
      dashboard: z
        .boolean()
        .default(false)
        .describe("A ConfigMap with the dashboard, labelled as Grafana's sidecar looks for it."),
      labels: z
        .record(z.string(), z.string())
        .default({})
        .describe('Of all three, where others take only what has a label of theirs.'),
    })
    .prefault({})
    .describe(
      'Objects for the Prometheus operator, which has to be there, and for Grafana: docs/guides/kube-prometheus.md.',
    ),
  resources: anyObject.default(defaultResources()).describe('Of the manager.'),
  nodeSelector: z
    .record(z.string(), z.string())
    .default({})
    .describe('Of the manager and the second scheduler. Virtual nodes are left out anyway.'),
  tolerations: z.array(anyObject).default([]).describe('Of the manager and the second scheduler.'),
  config: config
    .default({})
    .describe(
      "Of the manager's configuration file, what differs from its defaults: outages, descheduler, scheduler.scoring, scheduler.clientNames, kubelet.servingCertificate.mode, forceLeaveSeconds, logLevel.",
    ),
  global: anyObject.optional().describe('Not used; Helm hands it to charts within charts.'),
});

/** The values of the Helm chart, as people edit them. */
export function helmValues(): string {
  const about = Object.entries(valuesSchema.shape).filter(([name]) => name !== 'global');
  const defaults: Record<string, unknown> = valuesSchema.parse({});
  return about
    .map(([name, field]) => `${comment(describe(field))}${stringify({ [name]: defaults[name] }, { lineWidth: 0 })}`)
    .join('\n');
}

/** Helm holds all values to it, at every install, upgrade, template and lint. */
export function helmValuesSchema(): string {
  return `${JSON.stringify(z.toJSONSchema(valuesSchema, { target: 'draft-7', io: 'input' }), null, 2)}\n`;
}

function comment(words: string): string {
  return words.replaceAll(/(.{1,118})(?: |$)/g, '# $1\n');
}

function describe(schema: z.ZodType): string {
  return schema.description ?? '';
}

function defaultResources(): Record<string, unknown> {
  const deployment = manifestObjects('manager.yaml').find(({ kind }) => kind === 'Deployment');
  const { spec } = deployment as unknown as {
    spec: { template: { spec: { containers: [{ resources: Record<string, unknown> }] } } };
  };
  return spec.template.spec.containers[0].resources;
}
