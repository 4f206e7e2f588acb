import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Agent, request } from 'undici';
import type { Cluster } from '../../hack/cluster.ts';
import { IMAGES } from '../../hack/images.ts';
import { addMember, waitForNode, waitReady } from '../../hack/spillway.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import type { Secret } from '../../src/kube/core-v1.ts';
import { MODES_NAMESPACE, WRONG_MODES } from '../api/wrong-modes.ts';
import {
  describeWrite,
  eventsOf,
  type Fields,
  getPod,
  IDLE,
  kubectl,
  newNamespace,
  pod,
  podSpec,
  read,
  runPod,
  shell,
  untilGone,
  untilPod,
  untilRunning,
  writesOf,
} from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, so no token is tried: ${kubelets.reason}`);

const MODE = 'spillway.dev/service-account-mode';
const MOUNTED = '/var/run/secrets/kubernetes.io/serviceaccount';
const NS = MODES_NAMESPACE;
const ACCOUNT = 'builder';
const VAULT = {
  name: 'vault',
  projected: { sources: [{ serviceAccountToken: { path: 'token', audience: 'vault' } }] },
};

interface Review {
  status: { authenticated?: boolean; user?: { username: string; extra?: Record<string, string[]> } };
}

describe.runIf(kubelets.ok)('service accounts of pods in members', () => {
  let topology: Topology;
  let host: Cluster;
  /** Admits every mode; its pods reach the host. */
  let open: Cluster;
  let hostAddress: URL;

  beforeAll(async () => {
    topology = await startTopology({
      members: [
        // A kubelet looks for new tokens about once a minute; here more often.
        { name: 'open', kubelet: { node: 'open-1', configuration: { syncFrequency: '5s' } }, unregistered: true },
        { name: 'closed', kwok: { nodes: 1 } },
      ],
      host: { reachable: true },
    });
    ({ host } = topology);
    open = topology.member('open').cluster;
    hostAddress = new URL(host.server);
    const apiServer = { host: hostAddress.hostname, port: Number(hostAddress.port) };
    const spec = {
      serviceAccount: { allowed: ['Host', 'Member'], apiServer },
      probe: { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2 },
    };
    await addMember(host, open, { spec });
    await waitForNode(host, 'open');
    await newNamespace(host, NS);
    const rbac = 'rbac.authorization.k8s.io';
    const subjects = [{ kind: 'ServiceAccount', name: ACCOUNT, namespace: NS }];
    await host.apply([
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: ACCOUNT, namespace: NS } },
      {
        apiVersion: `${rbac}/v1`,
        kind: 'Role',
        metadata: { name: ACCOUNT, namespace: NS },
        rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }],
      },
      {
        apiVersion: `${rbac}/v1`,
        kind: 'RoleBinding',
        metadata: { name: ACCOUNT, namespace: NS },
        roleRef: { apiGroup: rbac, kind: 'Role', name: ACCOUNT },
        subjects,
      },
    ]);
    await kubectl(host, ['label', 'namespace', NS, `${MODE}=Host`]);
  });
  afterAll(() => topology?.close());

  function podOn(node: string, name: string, more: Fields = {}, mode?: string): Fields {
    const nodeSelector = { type: 'virtual-kubelet', 'kubernetes.io/hostname': node };
    const spec = podSpec([shell(IDLE)], { nodeSelector, serviceAccountName: ACCOUNT, ...more });
    return pod(name, NS, spec, mode === undefined ? {} : { annotations: { [MODE]: mode } });
  }

  const inPod = async (name: string, ...command: string[]): Promise<string> =>
    await kubectl(host, ['exec', '-n', NS, name, '-c', 'main', '--', ...command]);
  const fileOf = async (name: string, path: string): Promise<string> => await inPod(name, 'cat', path);

  async function review(cluster: Cluster, token: string, audiences?: string[]): Promise<Review['status']> {
    const spec = { token, ...(audiences === undefined ? {} : { audiences }) };
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec };
    return ((await cluster.api.call('POST', '/apis/authentication.k8s.io/v1/tokenreviews', body)) as Review).status;
  }

  function claimsOf(token: string): { exp: number; iat: number; aud: string[] } {
    const [, claims = ''] = token.split('.');
    return JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp: number; iat: number; aud: string[] };
  }

  async function tokenSecret(name: string): Promise<Secret | undefined> {
    const { metadata } = await getPod(host, NS, name);
    return await read<Secret>(open, `/api/v1/namespaces/${NS}/secrets/spillway-tokens-${metadata.uid}`);
  }

  describe('in mode Host', () => {
    beforeAll(async () => {
      const asking = {
        name: 'client',
        image: IMAGES.agnhost,
        args: ['inclusterclient', '--poll-interval=2'],
        volumeMounts: [],
      };
      const main = shell(IDLE, { volumeMounts: [{ name: 'vault', mountPath: '/vault' }] });
      await runPod(host, podOn('open', 'work', { containers: [main, asking], volumes: [VAULT] }));
    });

    test('an unmodified client in the pod finds and trusts the API server of the host, and is let in', async () => {
      const answers = (): (number | undefined)[] =>
        host
          .auditEvents()
          .filter(({ user }) => user.username === `system:serviceaccount:${NS}:${ACCOUNT}`)
          .map(({ responseStatus }) => responseStatus?.code);
      await until('the client has been answered twice', () => answers().length >= 2);
      expect(new Set(answers())).toEqual(new Set([200]));
      const log = await kubectl(host, ['logs', '-n', NS, 'work', '-c', 'client']);
      expect(log).toContain('calling /healthz');
      expect(log).not.toContain('status=failed');
      const environment = await inPod('work', 'env');
      expect(environment).toContain(`KUBERNETES_SERVICE_HOST=${hostAddress.hostname}\n`);
      expect(environment).toContain(`KUBERNETES_SERVICE_PORT=${hostAddress.port}\n`);
      expect(environment).toContain(`KUBERNETES_PORT=tcp://${hostAddress.host}\n`);
    });

    test('the files are where programs look for them; the token is of the host account, bound to the host pod', async () => {
      expect(await fileOf('work', `${MOUNTED}/namespace`)).toBe(NS);
      const [token, ca] = [await fileOf('work', `${MOUNTED}/token`), await fileOf('work', `${MOUNTED}/ca.crt`)];
      expect(ca.trim()).toBe(host.caPem.trim());
      const { authenticated, user } = await review(host, token);
      const { metadata } = await getPod(host, NS, 'work');
      expect(authenticated).toBe(true);
      expect(user?.username).toBe(`system:serviceaccount:${NS}:${ACCOUNT}`);
      expect(user?.extra).toMatchObject({
        'authentication.kubernetes.io/pod-name': ['work'],
        'authentication.kubernetes.io/pod-uid': [metadata.uid],
        'authentication.kubernetes.io/node-name': ['open'],
      });
      expect((await review(open, token)).authenticated).not.toBe(true);
      // Not the year that an API server gives those who ask for 3,607 s.
      const { exp, iat } = claimsOf(token);
      expect(exp - iat).toBe(3600);

      const agent = new Agent({ connect: { ca } });
      const ask = async (path: string): Promise<number> => {
        const headers = { authorization: `Bearer ${token}` };
        const { statusCode, body } = await request(`${host.server}${path}`, { dispatcher: agent, headers });
        await body.dump();
        return statusCode;
      };
      expect(await ask(`/api/v1/namespaces/${NS}/configmaps`)).toBe(200);
      expect(await ask(`/api/v1/namespaces/${NS}/secrets`)).toBe(403);
      await agent.close();
    });

    test('a token for an audience is good for that one and no other', async () => {
      const token = await fileOf('work', '/vault/token');
      expect(claimsOf(token).aud).toEqual(['vault']);
      expect((await review(host, token, ['vault'])).authenticated).toBe(true);
      expect((await review(host, token)).authenticated).not.toBe(true);
    });

    test('all of it is in one Secret of the member, and nothing in the pod', async () => {
      const secret = await tokenSecret('work');
      expect(secret?.type).toBe('spillway.dev/pod-tokens');
      expect(Object.keys(secret?.data ?? {}).sort()).toEqual(['ca.crt', 'token-0', 'token-1']);
      const below = await getPod(open, NS, 'work');
      expect(below.metadata.annotations?.[MODE]).toBe('Host');
      expect(below.spec.serviceAccountName).toBe('default');
      expect(below.spec.automountServiceAccountToken).toBe(false);
      expect(JSON.stringify(below)).not.toContain('eyJ');
      // The host made them for the virtual node, which may have those of its own pods only.
      const tokens = host
        .auditEvents()
        .filter(({ objectRef, verb }) => verb === 'create' && objectRef?.subresource === 'token');
      expect(tokens.length).toBeGreaterThanOrEqual(2);
      for (const { user, userAgent } of tokens) {
        if (userAgent?.startsWith('spillway') === true) expect(user.username).toBe('system:node:open');
      }
    });

    test('a debug container has the same token', async () => {
      const args = ['debug', '-n', NS, 'work', '--profile=baseline', `--image=${IMAGES.busybox}`, '--', 'true'];
      await kubectl(host, args);
      await untilPod(open, NS, 'work', 'has the debug container', ({ spec }) => spec.ephemeralContainers?.length === 1);
    });

    test('a start of the program writes nothing, and goes on to refresh', async () => {
      const before = await tokenSecret('work');
      const since = Date.now();
      await topology.spillway.process.stop('SIGKILL');
      topology.spillway.process.restart();
      await waitReady(topology.spillway);
      await host.apply([podOn('open', 'after', {}, 'Host')]);
      await untilRunning(host, NS, 'after', { timeoutMs: 60_000 });
      const writes = writesOf(open, since).filter(({ objectRef }) => objectRef?.name === before?.metadata.name);
      expect(writes.map(describeWrite)).toEqual([]);
      expect((await tokenSecret('work'))?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
      await kubectl(host, ['delete', 'pod', '-n', NS, 'after']);
    });

    test(
      'tokens are replaced when their time has come, and the pod gets the new ones',
      { timeout: 240_000 },
      async () => {
        const before = await tokenSecret('work');
        const refreshAfter = Date.parse(before?.metadata.annotations?.['spillway.dev/refresh-after'] ?? '');
        // 80 % of an hour, from when they were made.
        const made = Date.parse(before?.metadata.creationTimestamp ?? '');
        expect(Math.abs(refreshAfter - made - 0.8 * 3600_000)).toBeLessThan(30_000);
        const old = await fileOf('work', `${MOUNTED}/token`);
        const longAgo = 'spillway.dev/refresh-after=2001-01-01T00:00:00Z';
        await kubectl(open, ['annotate', 'secret', '-n', NS, before?.metadata.name ?? '', '--overwrite', longAgo]);
        const after = await until('the tokens are new', async () => {
          const now = await tokenSecret('work');
          return now?.data?.['token-0'] === before?.data?.['token-0'] ? undefined : now;
        });
        expect(Date.parse(after.metadata.annotations?.['spillway.dev/refresh-after'] ?? '')).toBeGreaterThan(
          refreshAfter - 1,
        );
        const file = await until(
          'the pod has the new token',
          async () => {
            const token = await fileOf('work', `${MOUNTED}/token`);
            return token === old ? undefined : token;
          },
          { timeoutMs: 180_000, intervalMs: 1_000 },
        );
        expect((await review(host, file)).authenticated).toBe(true);
      },
    );

    test('tokens that somebody deletes come back', async () => {
      const before = await tokenSecret('work');
      await kubectl(open, ['delete', 'secret', '-n', NS, before?.metadata.name ?? '']);
      await until('they are back', async () => {
        const now = await tokenSecret('work');
        return now !== undefined && now.metadata.uid !== before?.metadata.uid;
      });
    });

    test('tokens go with the pod, also with one that ends while the program is down', async () => {
      const { metadata } = await getPod(host, NS, 'work');
      const token = await fileOf('work', `${MOUNTED}/token`);
      const secrets = async (): Promise<string[]> => {
        const { items } = (await open.api.call('GET', `/api/v1/namespaces/${NS}/secrets`)) as { items: Secret[] };
        return items.map(({ metadata: { name } }) => name).filter((name) => name.startsWith('spillway-tokens-'));
      };
      await runPod(host, podOn('open', 'other'));
      await until('there are two', async () => (await secrets()).length === 2);
      await kubectl(host, ['delete', 'pod', '-n', NS, 'work']);
      await until('one is gone', async () => (await secrets()).length === 1);
      expect(await secrets()).not.toContain(`spillway-tokens-${metadata.uid}`);
      // An API server remembers for ten seconds what it found.
      await until('the token ended with the pod', async () => (await review(host, token)).authenticated !== true);
      await topology.spillway.process.stop('SIGKILL');
      await kubectl(host, ['delete', 'pod', '-n', NS, 'other', '--wait=false']);
      topology.spillway.process.restart();
      await waitReady(topology.spillway);
      await untilGone(host, NS, 'other', { timeoutMs: 60_000 });
      await until('all are gone', async () => (await secrets()).length === 0, { timeoutMs: 60_000 });
    });
  });

  test('in mode Member the account of the same name in the member is used, once it exists', async () => {
    await host.apply([podOn('open', 'theirs', { volumes: [VAULT] }, 'Member')]);
    const held = await untilPod(host, NS, 'theirs', 'waits', ({ status }) => status?.reason !== undefined);
    expect(held.status?.message).toContain(`serviceaccount "${ACCOUNT}" not found`);
    await open.apply([{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: ACCOUNT, namespace: NS } }]);
    await untilRunning(host, NS, 'theirs', { timeoutMs: 90_000 });
    const token = await fileOf('theirs', `${MOUNTED}/token`);
    expect((await review(open, token)).user?.username).toBe(`system:serviceaccount:${NS}:${ACCOUNT}`);
    expect((await review(host, token)).authenticated).not.toBe(true);
    const environment = await inPod('theirs', 'env');
    const master = await read<{ spec: { clusterIP: string } }>(open, '/api/v1/namespaces/default/services/kubernetes');
    expect(environment).toContain(`KUBERNETES_SERVICE_HOST=${master?.spec.clusterIP}\n`);
    expect(await tokenSecret('theirs')).toBeUndefined();
    await kubectl(host, ['delete', 'pod', '-n', NS, 'theirs']);
  });

  test('a pod may do without what its namespace asks for', async () => {
    await runPod(host, podOn('open', 'alone', {}, 'None'));
    expect(await tokenSecret('alone')).toBeUndefined();
    // The rest of the usual place is there, and speaks of the cluster that the pod runs in.
    expect(await inPod('alone', 'ls', MOUNTED)).toBe('ca.crt\nnamespace\n');
    expect(await fileOf('alone', `${MOUNTED}/namespace`)).toBe(NS);
    expect((await fileOf('alone', `${MOUNTED}/ca.crt`)).trim()).toBe(open.caPem.trim());
    expect(open.caPem).not.toBe(host.caPem);
    await kubectl(host, ['delete', 'pod', '-n', NS, 'alone']);
  });

  test.each(WRONG_MODES)(
    '%s is told once, and the pod runs when it is put right',
    async (what, node, mode, reason, words) => {
      const name = what.replaceAll(' ', '-');
      await host.apply([podOn(node, name, {}, mode)]);
      const held = await untilPod(host, NS, name, 'is held', ({ status }) => status?.reason === reason);
      expect(held.status?.message).toContain(words);
      expect(held.status?.message).toContain('This does not pass by itself.');
      expect(await read(topology.member(node).cluster, `/api/v1/namespaces/${NS}/pods/${name}`)).toBeUndefined();
      await until('it was told', async () => (await eventsOf(host, NS, name)).some((event) => event.reason === reason));
      await kubectl(host, ['annotate', 'pod', '-n', NS, name, `${MODE}=None`, '--overwrite']);
      await untilRunning(host, NS, name);
      const told = (await eventsOf(host, NS, name)).filter((event) => event.reason === reason);
      expect(told.map(({ count }) => count)).toEqual([1]);
      await kubectl(host, ['delete', 'pod', '-n', NS, name]);
    },
  );

  test('an audience that the host refuses is told in its words, and the pod starts once it is granted', async () => {
    const policy = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'audiences' },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['serviceaccounts/token'] },
          ],
        },
        validations: [{ expression: "!('vault' in object.spec.?audiences.orValue([]))", message: 'no vault for you' }],
      },
    };
    const binding = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: 'audiences' },
      spec: { policyName: 'audiences', validationActions: ['Deny'] },
    };
    await host.apply([policy, binding]);
    const path = `/api/v1/namespaces/${NS}/serviceaccounts/${ACCOUNT}/token`;
    const ask = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: ['vault'] } };
    await until('the policy is in force', async () => {
      const answer = await host.api.call('POST', path, ask).catch(String);
      return typeof answer === 'string' && answer.includes('no vault for you');
    });
    await host.apply([podOn('open', 'refused', { volumes: [VAULT] })]);
    const held = await untilPod(host, NS, 'refused', 'is held', ({ status }) => status?.reason !== undefined);
    expect(held.status?.reason).toBe('ServiceAccountTokenNotAvailable');
    expect(held.status?.message).toContain('The service account token for audience "vault" could not be brought');
    expect(held.status?.message).toContain('no vault for you');
    await kubectl(host, ['delete', 'validatingadmissionpolicybinding', 'audiences']);
    await untilRunning(host, NS, 'refused', { timeoutMs: 90_000 });
    await kubectl(host, ['delete', 'pod', '-n', NS, 'refused']);
  });

  test('nothing was an error, and no token is in a log', async () => {
    expect(errorsOf(topology.spillway)).toEqual([]);
    const log = readFileSync(topology.spillway.process.spec.logFile, 'utf8');
    expect(log.length).toBeGreaterThan(1000);
    expect(log).not.toMatch(/eyJ[\w-]+\.eyJ/);
  });
});
