import { describe, expect, it } from 'vitest';
import type { OverridePolicy } from '../../src/api/override-policy.ts';
import { SERVICE_ACCOUNT_MODES, type ServiceAccountMode } from '../../src/api/service-account-mode.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { identitiesOfPod } from '../../src/overrides/owners.ts';
import { withAccountFiles } from '../../src/pods/account-files.ts';
import { memberUpdates } from '../../src/pods/member-updates.ts';
import { PodOverrides } from '../../src/pods/pod-overrides.ts';
import { translatePod } from '../../src/pods/translate.ts';
import { boundPod, CONTEXT, frozen, type Loose, madePod, translated } from '../fixtures/translation.ts';
import { EAST, policy } from '../overrides/rendered-pod.ts';

const NAME = 'kube-api-access-x7x2z';
const TOKEN = { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } };
const CA = { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } };
const NAMESPACE = {
  downwardAPI: { items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }] },
};
const INJECTED = { name: NAME, projected: { defaultMode: 420, sources: [TOKEN, CA, NAMESPACE] } };
const LEFT = { name: NAME, projected: { defaultMode: 420, sources: [CA, NAMESPACE] } };
const MOUNT = { name: NAME, readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' };
const OWN = { name: 'own', mountPath: '/own' };

const hostPod = (volume: object = INJECTED, more: Loose = {}): Pod =>
  frozen(
    boundPod({
      containers: [{ name: 'app', volumeMounts: [OWN, MOUNT] }, { name: 'without' }],
      initContainers: [{ name: 'init', volumeMounts: [MOUNT] }],
      volumes: [{ name: 'own', emptyDir: {} }, volume],
      ...more,
    }),
  );
const memberPod = (pod: Pod, mode: ServiceAccountMode = 'None'): Pod =>
  frozen(translated(pod, { serviceAccountMode: mode }) as unknown as Pod);
const specOf = (pod: Pod): Loose => withAccountFiles(memberPod(pod), pod).spec as unknown as Loose;

function overridesOf(...policies: OverridePolicy[]): PodOverrides {
  const owners = identitiesOfPod(hostPod());
  return new PodOverrides({
    port: {
      unknown: () => undefined,
      policies: () => policies,
      owners: () => owners,
      readOwners: async () => await Promise.resolve(owners),
      member: () => EAST,
      pool: () => ({}),
    },
    translateContext: () => CONTEXT,
    dependents: { track: () => undefined },
    events: { record: () => undefined },
  });
}
async function made(pod: Pod, overrides: PodOverrides): Promise<Pod> {
  const answer = await overrides.forNewPod(pod, memberPod(pod), CONTEXT, new AbortController().signal);
  if (!('pod' in answer)) throw new Error(JSON.stringify(answer));
  return { ...answer.pod, metadata: { ...answer.pod.metadata, uid: 'in-the-member' } };
}
const plaintext = (...operations: object[]): OverridePolicy =>
  policy('ClusterOverridePolicy', 'p', { overrideRules: [{ overriders: { plaintext: operations } }] });

describe('the files beside the token, in mode None', () => {
  it('are those of the member, where the host has its own, in order and with their modes', () => {
    expect(specOf(hostPod())).toMatchObject({
      containers: [{ name: 'app', volumeMounts: [OWN, MOUNT] }, { name: 'without' }],
      initContainers: [{ name: 'init', volumeMounts: [MOUNT] }],
      volumes: [{ name: 'own', emptyDir: {} }, LEFT],
      automountServiceAccountToken: false,
    });
    expect((specOf(hostPod())['containers'] as Loose[])[1]).not.toHaveProperty('volumeMounts');
  });

  it.each(['deployment', 'statefulSet', 'job'] as const)('are in a pod of a %s, and nothing of a token', (kind) => {
    const pod = madePod(kind);
    const spec = specOf(pod);
    const text = JSON.stringify(spec);
    expect(text).toContain('kube-root-ca.crt');
    expect(text).not.toContain('serviceAccountToken"');
    const mounts = (one: Pod['spec']) => one.containers.map(({ volumeMounts = [] }) => volumeMounts.map((m) => m.name));
    expect(mounts(spec as unknown as Pod['spec'])).toEqual(mounts(pod.spec));
  });

  it('are not there where the host mounts none, nor where nothing but a token is in the volume', () => {
    const plain = boundPod();
    const bare = hostPod({ name: NAME, projected: { sources: [TOKEN] } });
    for (const pod of [plain, bare]) {
      const before = memberPod(pod);
      expect(withAccountFiles(before, pod)).toBe(before);
    }
  });

  it('are not waited for where only OpenShift publishes them', () => {
    const service = { configMap: { name: 'openshift-service-ca.crt', items: [{ key: 'a', path: 'a' }] } };
    const { volumes } = specOf(hostPod({ name: NAME, projected: { sources: [TOKEN, CA, service, NAMESPACE] } }));
    const optional = { configMap: { ...service.configMap, optional: true } };
    expect((volumes as Loose[])[1]).toEqual({ name: NAME, projected: { sources: [CA, optional, NAMESPACE] } });
  });

  it.each(SERVICE_ACCOUNT_MODES.filter((mode) => mode !== 'None'))('are no business of ours in mode %s', (mode) => {
    const before = memberPod(hostPod(), mode);
    expect(withAccountFiles(before, hostPod())).toBe(before);
  });
});

describe('policies', () => {
  it('see pods without these files, so none is in the way of another list of volumes', async () => {
    const volumes = [{ name: 'scratch', emptyDir: {} }];
    const pod = hostPod(INJECTED, { volumes: [INJECTED], containers: [{ name: 'app', volumeMounts: [MOUNT] }] });
    const patch = plaintext(
      { path: '/spec/volumes', operator: 'add', value: volumes },
      { path: '/spec/containers/0/volumeMounts', operator: 'add', value: [{ name: 'scratch', mountPath: '/scratch' }] },
    );
    const { spec } = await made(pod, overridesOf(patch));
    expect(spec.volumes).toEqual([...volumes, LEFT]);
    expect(spec.containers[0]?.volumeMounts).toEqual([{ name: 'scratch', mountPath: '/scratch' }, MOUNT]);
  });

  it('that mount something in their place win', async () => {
    const other = { name: 'own', mountPath: MOUNT.mountPath };
    const patch = plaintext({ path: '/spec/containers/0/volumeMounts/-', operator: 'add', value: other });
    const { spec } = await made(hostPod(), overridesOf(patch));
    expect(spec.containers[0]?.volumeMounts).toEqual([OWN, other]);
  });

  it('that have the member mount a token leave the place to it', async () => {
    const patch = plaintext({ path: '/spec/automountServiceAccountToken', operator: 'replace', value: true });
    const { spec } = await made(hostPod(), overridesOf(patch));
    expect(spec.volumes).toEqual([{ name: 'own', emptyDir: {} }]);
    expect(spec.containers[0]?.volumeMounts).toEqual([OWN]);
  });

  it('may put anything there: that is for the member to refuse', async () => {
    const volumes = plaintext({ path: '/spec/volumes', operator: 'replace', value: 'none' });
    expect((await made(hostPod(), overridesOf(volumes))).spec.volumes).toBe('none');
    const mounts = plaintext({ path: '/spec/containers/0/volumeMounts', operator: 'replace', value: 7 });
    expect((await made(hostPod(), overridesOf(mounts))).spec.containers[0]?.volumeMounts).toBe(7);
  });
});

describe('a copy that was made without them, by a former version', () => {
  const RUNNING = policy('ClusterOverridePolicy', 'p', {
    applyTo: 'RunningPods',
    overrideRules: [
      {
        overriders: {
          labelsOverrider: [{ operator: 'add', value: { seen: 'here' } }],
          plaintext: [{ path: '/spec/volumes/1', operator: 'add', value: { name: 'scratch', emptyDir: {} } }],
        },
      },
    ],
  });
  const former = (pod: Pod): Pod => {
    const copy = translatePod(pod, CONTEXT);
    if (copy.kind === 'refused') throw new Error(copy.message);
    return { ...copy.pod, metadata: { ...copy.pod.metadata, uid: 'in-the-member' } };
  };

  it('has received everything, and nothing is sent to it', () => {
    const overrides = overridesOf();
    const copy = former(hostPod());
    expect([overrides.isInSync(hostPod(), copy), overrides.isOutdated(hostPod(), copy)]).toEqual([true, false]);
    expect(memberUpdates(hostPod(), copy, CONTEXT)).toEqual([]);
  });

  it('is settled under rules that it was made with, too, as one with them is', async () => {
    const overrides = overridesOf(RUNNING);
    const now = await made(hostPod(), overrides);
    const { volumes = [], ...rest } = now.spec;
    expect(volumes).toEqual([{ name: 'own', emptyDir: {} }, { name: 'scratch', emptyDir: {} }, LEFT]);
    for (const copy of [now, { ...now, spec: { ...rest, volumes: volumes.slice(0, 2) } }]) {
      expect([overrides.isInSync(hostPod(), copy), overrides.isOutdated(hostPod(), copy)]).toEqual([true, false]);
    }
  });

  it('gets a debug container without their mount, and a newer one with it', async () => {
    const debug = [{ name: 'debug', volumeMounts: [OWN, MOUNT] }];
    const pod = hostPod(INJECTED, { ephemeralContainers: debug });
    const mounts = (copy: Pod): unknown => {
      const [first] = memberUpdates(pod, copy, CONTEXT);
      const spec = first?.patch['spec'] as { ephemeralContainers?: Loose[] } | undefined;
      return spec?.ephemeralContainers?.[0]?.['volumeMounts'];
    };
    expect(mounts(former(hostPod()))).toEqual([OWN]);
    expect(mounts(await made(hostPod(), overridesOf()))).toEqual([OWN, MOUNT]);
  });
});
