import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { PersistentVolume } from '../../src/kube/volumes.ts';
import type { ProxiedRequest } from '../fixtures/fault-proxy.ts';
import {
  type Fields,
  isReady,
  newNamespace,
  pod,
  podsOf,
  podSpec,
  read,
  readPod,
  untilGone,
  writesOfAll,
} from '../fixtures/live-pods.ts';
import { diskClass, type Provisioner, startProvisioner } from '../fixtures/provisioner.ts';
import { idle, Lab, report } from './lab.ts';
import { holdNth, type Moment } from './nth-write.ts';

/** More than any life has; the loop ends at the first number that is not reached. */
const MOST_SITES = 30;

/** What a pod takes with it, in words; the fewest writes that its birth and its death need. */
interface Shape {
  what: string;
  /** Of its namespaces. */
  prefix: string;
  claims: boolean;
  fewest: { birth: number; death: number };
}

const SHAPES: readonly Shape[] = [
  // Namespace, ConfigMap, Secret, pod, status; change, deletion below, deletion above, two copies; each before and after.
  { what: 'a ConfigMap and a Secret', prefix: '', claims: false, fewest: { birth: 10, death: 8 } },
  // Volume and claim above, claim below, tokens and the Secret that carries them, the word that the pod is being made; and their ends.
  { what: 'a claim and tokens, too', prefix: 'whole-', claims: true, fewest: { birth: 20, death: 14 } },
];

/**
 * The life of a pod, with everything in it that writes: a namespace, a ConfigMap and a Secret before it, a change while
 * it runs, its end. The program is killed at each of its writes about it, before the request reaches the API server and
 * after it was carried out, and started again. No hook in the program: the proxies hold the request or its answer.
 */
describe('a crash at every API call', () => {
  let lab: Lab;
  let disks: Provisioner | undefined;
  beforeAll(async () => {
    lab = await Lab.start({
      proxied: ['host', 'member'],
      memberSpec: ({ server }) => {
        const { hostname, port } = new URL(server);
        return { serviceAccount: { allowed: ['Host'], apiServer: { host: hostname, port: Number(port) } } };
      },
    });
    const isDefault = { name: 'disk', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } };
    await lab.member.apply([diskClass('disk', { metadata: isDefault })]);
    disks = startProvisioner(lab.member);
  });
  afterAll(async () => {
    await disks?.close();
    await lab?.close();
  });

  /** Of a pod's namespace, or of what has none: namespaces themselves and volumes. */
  const isWrite = (namespace: string) => {
    const own = new RegExp(`/namespaces/${namespace}(/|$)`);
    return ({ method, path }: ProxiedRequest): boolean =>
      method !== 'GET' &&
      (own.test(path) ||
        (method === 'POST' && path === '/api/v1/namespaces') ||
        /^\/api\/v1\/persistentvolumes(\/|$)/.test(path));
  };

  /** Does `act` and kills the program at its n-th write since, if it gets that far before `done`. */
  async function crashAt(
    site: number,
    when: Moment,
    namespace: string,
    act: (isReached: () => boolean) => Promise<unknown>,
    done: () => Promise<boolean>,
  ): Promise<boolean> {
    const { host, member } = lab.proxies;
    const held = holdNth({ host, member }, isWrite(namespace), site, when);
    const isReached = (): boolean => held.found !== undefined;
    await act(isReached);
    await until('the site or the end', async () => isReached() || (await done()), { timeoutMs: 120_000 });
    held.remove();
    if (!isReached()) return false;
    await lab.spillway.process.stop('SIGKILL');
    lab.spillway.process.restart();
    await waitReady(lab.spillway);
    await until(`what was begun is done after a crash at ${when} ${site}`, done, { timeoutMs: 120_000 });
    return true;
  }

  async function prepare(namespace: string, { claims }: Shape): Promise<void> {
    await newNamespace(lab.host, namespace);
    const metadata = { name: 'used', namespace };
    const resources = { requests: { storage: '1Gi' } };
    const spec = { accessModes: ['ReadWriteOnce'], resources, storageClassName: 'spillway' };
    await lab.host.apply([
      { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: '1' } },
      { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { b: '2' } },
      ...(claims ? [{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec }] : []),
    ]);
  }

  function definition(namespace: string, { claims }: Shape): Fields {
    const envFrom = [{ configMapRef: { name: 'used' } }, { secretRef: { name: 'used' } }];
    const container = { name: 'main', image: 'example.invalid/app:1', envFrom };
    if (!claims) return idle('one', namespace, { containers: [container] });
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'used' } }];
    const volumeMounts = [{ name: 'data', mountPath: '/data' }];
    const annotations = { 'spillway.dev/service-account-mode': 'Host' };
    return pod('one', namespace, podSpec([{ ...container, volumeMounts }], { volumes }), { annotations });
  }

  /** Both sides have exactly one pod, running, and the one is the other's. */
  const runs = (namespace: string) => async (): Promise<boolean> => {
    const [above] = await podsOf(lab.host, namespace);
    const below = await podsOf(lab.member, namespace).catch(() => []);
    return (
      above !== undefined &&
      isReady(above) &&
      below.length === 1 &&
      below[0]?.metadata.labels?.['spillway.dev/uid'] === above.metadata.uid
    );
  };

  /** Requests that really made such an object in the member; those that only asked (dryRun) made none. */
  function creations(namespace: string, resource: 'pods' | 'persistentvolumeclaims'): string[] {
    return writesOfAll(lab.member)
      .filter(
        ({ verb, objectRef, responseStatus }) =>
          verb === 'create' &&
          objectRef?.resource === resource &&
          objectRef.subresource === undefined &&
          objectRef.namespace === namespace &&
          responseStatus?.code === 201,
      )
      .map(({ objectRef, requestReceivedTimestamp }) => `${objectRef?.name} at ${requestReceivedTimestamp}`);
  }

  /** No pod was made twice, and no claim: two would be two places for the data. */
  function expectMadeOnce(namespace: string, { claims }: Shape): void {
    expect(creations(namespace, 'pods'), namespace).toHaveLength(1);
    expect(creations(namespace, 'persistentvolumeclaims'), namespace).toHaveLength(claims ? 1 : 0);
  }

  /** What there is of a namespace that the life of its pod brought with it, on both sides. */
  async function remains(namespace: string): Promise<string[]> {
    const below = `/api/v1/namespaces/${namespace}`;
    const claim = `${below}/persistentvolumeclaims/used`;
    const objects = await Promise.all([
      readPod(lab.host, namespace, 'one'),
      readPod(lab.member, namespace, 'one'),
      read<KubeObject>(lab.member, `${below}/configmaps/used`),
      read<KubeObject>(lab.host, claim),
      read<KubeObject>(lab.member, claim),
    ]);
    const secrets = await read<{ items: KubeObject[] }>(lab.member, `${below}/secrets`);
    const volumes = await read<{ items: PersistentVolume[] }>(lab.host, '/api/v1/persistentvolumes');
    const ours = volumes?.items.filter(({ spec }) => spec.claimRef?.namespace === namespace) ?? [];
    const found = [...objects, ...(secrets?.items ?? []), ...ours].filter((one) => one !== undefined);
    return found.map(({ kind = 'object', metadata }) => `${kind} ${metadata.name}`);
  }

  test.for(SHAPES)('F02: while a pod with $what comes to life', { timeout: 1_800_000 }, async (shape, context) => {
    let sites = 0;
    for (const when of ['before', 'after'] as const) {
      for (let site = 1; site <= MOST_SITES; site++) {
        const namespace = `${shape.prefix}born-${when}-${site}`;
        await prepare(namespace, shape);
        const act = async (): Promise<unknown> => await lab.host.apply([definition(namespace, shape)]);
        const reached = await crashAt(site, when, namespace, act, runs(namespace));
        expectMadeOnce(namespace, shape);
        if (!reached) break;
        sites += 1;
      }
    }
    expect(sites).toBeGreaterThanOrEqual(shape.fewest.birth);
    expect(lab.violations()).toEqual([]);
    const made = shape.claims ? '1 member pod and 1 claim' : '1 member pod';
    report(
      context,
      ['F02'],
      'one pod each, adopted',
      `with ${shape.what}: ${sites} crash sites, ${made} created at each`,
    );
  });

  test.for(SHAPES)(
    'F03: while a pod with $what is changed and dies',
    { timeout: 1_800_000 },
    async (shape, context) => {
      let sites = 0;
      for (const when of ['before', 'after'] as const) {
        for (let site = 1; site <= MOST_SITES; site++) {
          const namespace = `${shape.prefix}dies-${when}-${site}`;
          await prepare(namespace, shape);
          await lab.host.apply([definition(namespace, shape)]);
          await until('it runs', runs(namespace), { timeoutMs: 60_000 });
          const uid = (await readPod(lab.member, namespace, 'one'))?.metadata.uid;
          const path = `/api/v1/namespaces/${namespace}/pods/one`;
          const act = async (isReached: () => boolean): Promise<void> => {
            await lab.host.api.call('PATCH', path, { metadata: { labels: { changed: 'yes' } } });
            await until(
              'the change is on its way',
              async () => {
                const below = await readPod(lab.member, namespace, 'one');
                const changed = below?.metadata.labels?.['changed'] === 'yes';
                if (changed) expect(below?.metadata.uid).toBe(uid);
                return changed || isReached();
              },
              { timeoutMs: 20_000 },
            );
            const what = shape.claims ? ['pod/one', 'pvc/used'] : ['pod/one'];
            await lab.host.kubectl(['delete', ...what, '-n', namespace, '--wait=false']);
          };
          const gone = async (): Promise<boolean> => {
            const left = await remains(namespace);
            if (left.length > 0) throw new Error(`there are still ${left.join(', ')} of ${namespace}`);
            return true;
          };
          const reached = await crashAt(site, when, namespace, act, gone);
          await untilGone(lab.host, namespace, 'one');
          expectMadeOnce(namespace, shape);
          if (!reached) break;
          sites += 1;
        }
      }
      expect(sites).toBeGreaterThanOrEqual(shape.fewest.death);
      expect(lab.violations()).toEqual([]);
      const left = shape.claims ? 'pod, copy, token, claim or volume' : 'pod or copy';
      report(
        context,
        ['F03'],
        'gone once, on both sides',
        `with ${shape.what}: ${sites} crash sites, no ${left} left, none made again`,
      );
    },
  );
});
