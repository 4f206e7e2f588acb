import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { parse } from 'yaml';
import { z } from 'zod';
import { scoringConfig } from './api/scoring.ts';

const certFile = z
  .string()
  .min(1)
  .describe('Path of a PEM file with the certificate, and those between it and its CA.');
const keyFile = z.string().min(1).describe('Path of a PEM file with its key.');

const servingCertificate = z
  .discriminatedUnion('mode', [
    z.strictObject({
      mode: z.literal('SelfSigned').describe('Made at start. Works where the API server does not verify kubelets.'),
    }),
    z.strictObject({
      mode: z
        .literal('Csr')
        .describe('Asked from the cluster with signer kubernetes.io/kubelet-serving; somebody has to approve it.'),
    }),
    z.strictObject({
      mode: z.literal('Files').describe('Supplied as files, read again when they change.'),
      certFile,
      keyFile,
    }),
  ])
  .default({ mode: 'SelfSigned' });

/** What one process can do; all of it unless the configuration says otherwise. */
const COMPONENTS = ['members', 'scheduler'] as const;

const schedulerConfig = z
  .strictObject({
    bindAddress: z.string().default('0.0.0.0').describe('Address on which schedulers are answered.'),
    port: z.int().min(0).max(65535).default(10270).describe('Port of the same. 0: any free port.'),
    names: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe(
        'DNS names and addresses in a certificate that Spillway makes. Default: those of the Service spillway-scheduler, its cluster IP, and, of mode SelfSigned, nodeAddress.',
      ),
    servingCertificate: z
      .discriminatedUnion('mode', [
        z.strictObject({
          mode: z
            .literal('SelfManaged')
            .describe(
              'Made by Spillway and kept in a Secret of its namespace; what a second kube-scheduler has to show and to trust is in another one.',
            ),
          secretName: z.string().min(1).default('spillway-scheduler').describe('Name of the first Secret.'),
          clientSecretName: z
            .string()
            .min(1)
            .default('spillway-scheduler-client')
            .describe('Name of the other one: ca.crt, tls.crt and tls.key.'),
        }),
        z.strictObject({
          mode: z
            .literal('SelfSigned')
            .describe('Made at start. Schedulers cannot check it, so only where nobody can get in between.'),
        }),
        z.strictObject({
          mode: z.literal('Files').describe('Supplied as files, read again when they change.'),
          certFile,
          keyFile,
        }),
      ])
      .prefault({ mode: 'SelfManaged' }),
    clientCaFile: z
      .string()
      .optional()
      .describe(
        "CA bundle for the schedulers' client certificates. Trusted besides: whom Spillway gave one itself (mode SelfManaged). Default: the host's ConfigMap kube-system/extension-apiserver-authentication.",
      ),
    clientNames: z
      .array(z.string().min(1))
      .default([
        'system:kube-scheduler',
        'spillway-scheduler-client',
        'system:serviceaccount:spillway-system:spillway-scheduler',
      ])
      .describe('Common names of client certificates that may ask.'),
    scoring: scoringConfig.describe('How clusters are compared where no policy says otherwise.'),
  })
  .prefault({});

const webhookCertificate = z
  .discriminatedUnion('mode', [
    z.strictObject({
      mode: z
        .literal('SelfManaged')
        .describe('Made by Spillway, kept in a Secret of its namespace, and told to the API server.'),
      secretName: z.string().min(1).default('spillway-webhook').describe('Name of that Secret.'),
      names: z
        .array(z.string().min(1))
        .default([])
        .describe('DNS names and addresses that the API server calls. Default: spillway-webhook.NAMESPACE.svc.'),
    }),
    z.strictObject({
      mode: z
        .literal('Files')
        .describe('Supplied as files, read again when they change. caBundle of the configuration is yours to fill in.'),
      certFile,
      keyFile,
    }),
  ])
  .prefault({ mode: 'SelfManaged' });

const admission = z
  .strictObject({
    schedulerName: z
      .string()
      .min(1)
      .optional()
      .describe('Scheduler for pods that may leave the host and asked for none. Default: the one they have.'),
    splitNodeConstraints: z
      .boolean()
      .default(false)
      .describe(
        'Let pods with node selectors and node affinities go to virtual nodes, and hold the member to them. Needs the extender.',
      ),
    webhook: z
      .strictObject({
        enabled: z
          .boolean()
          .default(false)
          .describe(
            'Serve manifests/admission/webhook.yaml. From Kubernetes 1.36 on its policies do the same without it.',
          ),
        bindAddress: z.string().default('0.0.0.0').describe('Address that the webhook listens on.'),
        port: z.int().min(0).max(65535).default(9443).describe('Port of the same. 0: any free port.'),
        configuration: z
          .string()
          .min(1)
          .default('spillway-pod-defaults')
          .describe('Name of the MutatingWebhookConfiguration.'),
        clientCaFile: z
          .string()
          .optional()
          .describe(
            'PEM file with the CA of client certificates; only who shows one is answered. API servers show one if their AdmissionConfiguration says so. Read at the start. Default: whoever asks is answered.',
          ),
        certificate: webhookCertificate,
      })
      .prefault({}),
  })
  .prefault({})
  .describe('What pods get when they are created, where the webhook does it.');

const outages = z
  .strictObject({
    toleration: z
      .union([z.literal('Forever'), z.literal('Keep'), z.int().min(1).max(31_536_000)])
      .default('Forever')
      .describe(
        'For how long pods on virtual nodes stay while no replica serves these: Forever, so many seconds, or Keep: as long as they say when they come. Pods that say something of their own keep that.',
      ),
    admissionSeconds: z
      .int()
      .min(0)
      .max(31_536_000)
      .default(300)
      .describe(
        "What every pod says that says nothing of its own: the flag --default-unreachable-toleration-seconds of the host's API server.",
      ),
  })
  .prefault({})
  .describe('What becomes of pods when all replicas of the manager are away for longer than Kubernetes waits.');

const rate = (value: number) => z.number().min(0.01).max(1_000).default(value);

const descheduler = z
  .strictObject({
    movesPerSecond: rate(10).describe('Pods that are moved out of all members together, at most, per second.'),
    movesPerSecondPerMember: rate(2).describe('Pods that are moved out of one member, at most, per second.'),
    movesPerPodPerHour: rate(5).describe(
      'Of a workload so many times as many pods as it has are moved within an hour, at most, whatever the reasons; pods of gangs that give up are counted, and not held.',
    ),
    dryRun: z
      .boolean()
      .default(false)
      .describe(
        'Moves nothing, and tells on each pod by an Event (MoveWanted) and in the log why it would be moved now.',
      ),
  })
  .prefault({})
  .describe('How fast pods are moved out of members that are lost or tainted, where the component scheduler runs.');

/** The configuration file (YAML). Every field has a default; flags of the same name win. */
export const managerConfigSchema = z.strictObject({
  kubeconfig: z
    .string()
    .optional()
    .describe('Path of the kubeconfig for the host. Default: $KUBECONFIG, then in-cluster.'),
  context: z.string().optional().describe('Context within the kubeconfig. Default: its current-context.'),
  namespace: z.string().default('spillway-system').describe('Namespace of Leases that replicas share members through.'),
  components: z
    .array(z.enum(COMPONENTS))
    .min(1)
    .default([...COMPONENTS])
    .describe(
      'What this process does. members: virtual nodes and their pods. scheduler: answers kube-scheduler where pods may go (manifests/scheduler), and watches for that the members that other replicas act for.',
    ),
  identity: z
    .string()
    .optional()
    .describe(
      'Name of this replica in Leases; must never belong to two processes that live. Default: one that the next process in the same place inherits, so that it need not wait after a crash.',
    ),
  nodeAddress: z
    .string()
    .optional()
    .describe(
      'Address under which the host API server reaches this process. Default: $POD_IP, then the first non-loopback IPv4 address.',
    ),
  hostIdentity: z
    .enum(['Auto', 'NodeCertificate', 'ServiceAccount'])
    .default('Auto')
    .describe(
      "Whom virtual nodes are towards the host. NodeCertificate: each system:node:NAME by a client certificate, limited by the Node authorizer. ServiceAccount: all of them the manager's own identity. Auto: the first where the host signs certificates and lets nodes work, else the second.",
    ),
  kubelet: z
    .strictObject({
      bindAddress: z.string().default('0.0.0.0').describe('Address that virtual nodes listen on.'),
      firstPort: z
        .int()
        .min(0)
        .max(65000)
        .default(0)
        .describe(
          'First of up to 1000 ports for virtual nodes. Each keeps the one that its Node says, else it gets the first free one. 0: any free port.',
        ),
      servingCertificate,
      clientCaFile: z
        .string()
        .optional()
        .describe(
          "CA bundle for client certificates. Default: the host's ConfigMap kube-system/extension-apiserver-authentication.",
        ),
    })
    .prefault({}),
  outages,
  scheduler: schedulerConfig,
  descheduler,
  http: z
    .strictObject({
      bindAddress: z.string().default('0.0.0.0').describe('Address of /metrics, /healthz and /readyz.'),
      port: z.int().min(0).max(65535).default(8080).describe('Port of the same. 0: any free port.'),
    })
    .prefault({}),
  admission,
  forceLeaveSeconds: z
    .int()
    .min(10)
    .max(86_400)
    .default(300)
    .describe(
      'For how long without a break this process must have found that a member cannot be asked before annotation spillway.dev/force-leave of its MemberCluster counts, in seconds.',
    ),
  shutdownGraceSeconds: z
    .int()
    .min(0)
    .max(300)
    .default(8)
    .describe('How long streams may go on after SIGTERM, in seconds.'),
  logLevel: z
    .enum(['trace', 'debug', 'info', 'warn', 'error'])
    .default('info')
    .describe('What is written to standard error: of this level, or above it.'),
});

export type ManagerConfig = z.infer<typeof managerConfigSchema>;

/**
 * Reads the configuration file, if any, and lays the flags over it.
 * @throws Error naming the file and the field that is wrong.
 */
export function loadConfig(file: string | undefined, flags: Record<string, unknown>): ManagerConfig {
  const read = readConfig(file === undefined ? '' : readFileSync(file, 'utf8'), flags);
  if ('problem' in read) throw new Error(`${file ?? 'flags'}: ${read.problem}`);
  return read.config;
}

/** The text of a configuration file with flags over it, or in words what is wrong with it, field by field. Pure. */
function readConfig(
  text: string,
  flags: Record<string, unknown> = {},
): { config: ManagerConfig } | { problem: string } {
  let document: unknown;
  try {
    document = parse(text) ?? {};
  } catch (error) {
    return { problem: `it is no YAML: ${error instanceof Error ? error.message : ''}` };
  }
  if (!isRecord(document)) return { problem: 'the configuration must be a mapping' };
  const result = managerConfigSchema.safeParse(merge(document, flags));
  return result.success ? { config: result.data } : { problem: z.prettifyError(result.error) };
}

function merge(base: Record<string, unknown>, over: Record<string, unknown>): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) {
    if (value === undefined) continue;
    const before = merged[key];
    merged[key] = isRecord(value) && isRecord(before) ? merge(before, value) : value;
  }
  return merged;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The address virtual nodes announce. Loopback ones would make the API server refuse `nodes/NAME/proxy`. */
export function nodeAddressOf(config: ManagerConfig): string {
  const given = config.nodeAddress ?? process.env['POD_IP'];
  if (given !== undefined && given !== '') return given;
  for (const addresses of Object.values(networkInterfaces())) {
    for (const { address, family, internal } of addresses ?? []) if (family === 'IPv4' && !internal) return address;
  }
  throw new Error('no non-loopback IPv4 address was found; set nodeAddress');
}
