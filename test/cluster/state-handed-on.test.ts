import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { manifest } from '../../hack/manifest.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import { type Fields, kubectl, newNamespace, podSpec, shell, untilPod } from '../fixtures/live-pods.ts';
import { policy, policyInUse } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${kubelets.reason}`);

const LABEL = 'example.com/point';
/** Says what it starts with. With nothing it comes to a point, says so when it ends, and is started again. */
const PROGRAM = [
  'echo "starts at <$POINT>"',
  'if [ -z "$POINT" ] && [ ! -e /state/saved ]; then touch /state/saved; echo point-7 > /dev/termination-log; exit 0; fi',
  'trap "exit 0" TERM; while :; do sleep 0.1; done',
].join('\n');

/** Two members with one node each; nothing but a kubelet reads what is handed on. */
describe.runIf(kubelets.ok)('a program in a pod that was moved', () => {
  let topology: Topology;
  let host: Cluster;
  const namespace = 'resuming';

  beforeAll(async () => {
    const members = ['east', 'west'].map((name) => ({ name, kubelet: `${name}-1` }));
    topology = await startTopology({ extender: true, members });
    ({ host } = topology);
    await host.apply(manifest('scheduler/descheduler.yaml'));
    await newNamespace(host, namespace);
  });
  afterAll(async () => {
    const errors = topology === undefined ? [] : errorsOf(topology.spillway);
    await topology?.close();
    expect(errors).toEqual([]);
  });

  function job(): Fields {
    const labels = { app: 'job' };
    const env = [{ name: 'POINT', valueFrom: { fieldRef: { fieldPath: `metadata.labels['${LABEL}']` } } }];
    const spec = podSpec([shell(PROGRAM, { env, volumeMounts: [{ name: 'state', mountPath: '/state' }] })], {
      volumes: [{ name: 'state', emptyDir: {} }],
    });
    return {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'job', namespace },
      spec: {
        replicas: 1,
        serviceName: 'job',
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec },
      },
    };
  }

  test('reads from its environment what the one before it said when it ended', { timeout: 180_000 }, async () => {
    const placement = { clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] } };
    const { spec, ...rest } = policy(namespace, 'resuming', placement);
    const rules = [{ aliasLabelName: LABEL, jsonPath: '{.containerStatuses[0].lastState.terminated.message}' }];
    const resourceSelectors = [{ apiVersion: 'apps/v1', kind: 'StatefulSet' }];
    const failover = { cluster: { statePreservation: { rules } } };
    await host.apply([{ ...rest, spec: { ...(spec as Fields), resourceSelectors, failover } }]);
    await policyInUse(host, namespace, 'resuming');
    await host.apply([job()]);
    const patient = { timeoutMs: 90_000 };
    const before = await untilPod(
      host,
      namespace,
      'job-0',
      'ran once',
      ({ spec: { nodeName }, status }) => {
        const [main] = status?.containerStatuses ?? [];
        return nodeName === 'east' && main?.ready === true && main.lastState?.terminated?.message === 'point-7\n';
      },
      patient,
    );
    const taints = [{ key: 'drained', effect: 'NoExecute' }];
    await host.api.call('PATCH', '/apis/spillway.dev/v1alpha1/memberclusters/east', {
      spec: { clusterTaints: taints },
    });
    const after = await untilPod(
      host,
      namespace,
      'job-0',
      'runs in west',
      ({ metadata, spec: { nodeName }, status }) =>
        metadata.uid !== before.metadata.uid && nodeName === 'west' && status?.containerStatuses?.[0]?.ready === true,
      patient,
    );
    expect(after.metadata.labels).toMatchObject({ app: 'job', [LABEL]: 'point-7' });
    const said = await until('its log is there', async () => {
      const log = await kubectl(host, ['logs', 'job-0', '-n', namespace]);
      return log === '' ? undefined : log;
    });
    expect(said).toBe('starts at <point-7>\n');
  });
});
