import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hostIdOf } from '../../src/api/marks.ts';
import { MEMBER_STORAGE } from '../../src/api/storage.ts';
import { runProgram } from '../../src/cli/program.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

let host: MemoryApi;
let member: MemoryApi;
let servers: MemoryApiServer[];
let folder: string;
let hostUid: string;
let memberUid: string;

beforeEach(async () => {
  [host, member] = [new MemoryApi({ uid: uids('h') }), new MemoryApi({ uid: uids('m') })];
  const [hostServer, eastServer] = [await serveMemoryApi(host), await serveMemoryApi(member)];
  servers = [hostServer, eastServer];
  [hostUid, memberUid] = [host, member].map((api) => send(api, '/api/v1/namespaces', 'Namespace', 'kube-system')) as [
    string,
    string,
  ];
  folder = mkdtempSync(join(tmpdir(), 'spillway-orphans-'));
  writeKubeconfig(join(folder, 'kubeconfig'), { host: hostServer, east: eastServer });
});
afterEach(async () => {
  for (const server of servers) await server.close();
  rmSync(folder, { recursive: true });
});

const SPECS: Readonly<Record<string, object>> = {
  Pod: { spec: { containers: [{ name: 'main', image: 'app' }] } },
  PersistentVolumeClaim: { spec: { accessModes: ['ReadWriteOnce'] } },
};

function uids(prefix: string): () => string {
  let made = 0;
  return () => `${prefix}-${String((made += 1))}`;
}

/** Answers the UID. */
function send(api: MemoryApi, path: string, kind: string, name: string, more: { metadata?: object } = {}): string {
  const { metadata = {}, ...rest } = more;
  const body = { apiVersion: 'v1', kind, metadata: { name, ...metadata }, ...SPECS[kind], ...rest };
  const { metadata: made } = api.handle({ method: 'POST', path, query: {}, body, contentType: 'application/json' }) as {
    metadata: { uid: string };
  };
  return made.uid;
}

/** In the member, as the manager of this host makes it. */
function copy(
  plural: string,
  kind: string,
  name: string,
  o: { uid?: string; hostId?: string; claimOf?: string } = {},
): void {
  const { uid = 'gone', hostId = hostIdOf(hostUid), claimOf } = o;
  const labels = { 'spillway.dev/host': hostId, 'spillway.dev/uid': uid };
  const annotations = {
    'spillway.dev/host-namespace': 'shop',
    'spillway.dev/host-name': name,
    ...(claimOf === undefined ? {} : { 'spillway.dev/host-uid': claimOf }),
  };
  const path = kind === 'Namespace' ? '/api/v1/namespaces' : `/api/v1/namespaces/shop/${plural}`;
  send(member, path, kind, name, { metadata: { labels, annotations } });
}

/** In the host: it stands for claim `data` of namespace shop of a cluster that was member east. */
function volume(name: string, claimUid: string, identity: string, annotations: object = {}): void {
  const volumeAttributes = { member: 'east', identity, namespace: 'shop', claim: 'data' };
  const claimRef = { namespace: 'shop', name: 'data', uid: claimUid };
  send(host, '/api/v1/persistentvolumes', 'PersistentVolume', name, {
    metadata: { annotations },
    spec: { claimRef, csi: { driver: MEMBER_STORAGE, volumeHandle: name, volumeAttributes } },
  } as object);
}

function register(status?: object): void {
  send(host, '/apis/spillway.dev/v1alpha1/memberclusters', 'MemberCluster', 'east', {
    apiVersion: 'spillway.dev/v1alpha1',
    spec: {},
    ...(status === undefined ? {} : { status }),
  } as object);
}

async function orphans(...words: string[]): Promise<{ code: number; stdout: string; notes: string }> {
  const terminal = new FakeTerminal({ env: { HOME: folder } });
  const flags = ['--kubeconfig', join(folder, 'kubeconfig'), '--member-context', 'east', ...words];
  const code = await runProgram(['orphans', ...flags], terminal);
  return { code, stdout: terminal.stdout, notes: terminal.notes.join('\n') };
}

const names = (kind: string): string[] =>
  member.objects.valuesIn(`/api/v1/${kind}`).map(({ metadata }) => metadata.name);

describe('of a cluster that is no member any more', () => {
  beforeEach(() => {
    copy('pods', 'Pod', 'web');
    copy('secrets', 'Secret', 'key');
    copy('pods', 'Pod', 'theirs', { hostId: 'another0host0000' });
    send(member, '/api/v1/namespaces/shop/configmaps', 'ConfigMap', 'strange');
  });

  it('lists all that has the mark of this host, and deletes nothing', async () => {
    copy('namespaces', 'Namespace', 'shop');
    const { code, stdout } = await orphans('--no-headers');
    expect(code).toBe(5);
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3).join(' '))).toEqual([
      'Pod shop web',
      'Secret shop key',
      'Namespace <none> shop',
      '',
    ]);
    expect(member.requests('DELETE')).toEqual([]);
    expect(JSON.parse((await orphans('-o', 'json')).stdout)).toMatchObject({
      kind: 'OrphanList',
      items: [
        { kind: 'Pod', of: 'shop/web', needed: false },
        { kind: 'Secret' },
        { kind: 'Namespace', namespace: null },
      ],
    });
  });

  it('deletes it when asked to, and nothing of others', async () => {
    const { code, stdout } = await orphans('--delete');
    expect([code, stdout]).toEqual([0, 'pod/web of namespace shop deleted\nsecret/key of namespace shop deleted\n']);
    expect([names('pods'), names('secrets'), names('configmaps')]).toEqual([['theirs'], [], ['strange']]);
  });

  it('leaves a namespace that this host has not made, with nothing in it', async () => {
    send(member, '/api/v1/namespaces', 'Namespace', 'theirs');
    copy('namespaces', 'Namespace', 'others', { hostId: 'another0host0000' });
    expect((await orphans('--delete')).code).toBe(0);
    expect(names('namespaces')).toEqual(['kube-system', 'others', 'theirs']);
  });

  it('shows names that a hostile member makes up as plain text', async () => {
    const path = '/api/v1/namespaces/shop/pods/web';
    const { metadata, ...rest } = member.objects.get(path) ?? { metadata: { name: '', uid: '', resourceVersion: '' } };
    member.put(path, { ...rest, metadata: { ...metadata, name: 'web\u001b[2J' } });
    for (const words of [
      ['-o', 'name'],
      ['--delete', '--dry-run', 'client'],
    ]) {
      expect((await orphans(...words)).stdout).toMatch(/^pod\/web\[2J( |$)/m);
    }
  });

  it('shows what would be deleted', async () => {
    const { code, stdout } = await orphans('--delete', '--dry-run', 'client');
    expect([code, stdout]).toEqual([0, expect.stringContaining('pod/web of namespace shop deleted (dry run)')]);
    expect(member.requests('DELETE')).toEqual([]);
  });

  it.each([
    ['something would stay', true, 5, 'namespace/shop stays: what stays is in it'],
    ['nothing would', false, 0, 'namespace/shop deleted if nothing else is in it (dry run)'],
  ])('ends in a dry run as without one where %s', async (_what, hasClaim, code, words) => {
    member.delete('/api/v1/namespaces/shop/configmaps/strange');
    member.delete('/api/v1/namespaces/shop/pods/theirs');
    copy('namespaces', 'Namespace', 'shop');
    if (hasClaim) copy('persistentvolumeclaims', 'PersistentVolumeClaim', 'data');
    const dry = await orphans('--delete', '--dry-run', 'client');
    expect([dry.code, dry.stdout]).toEqual([code, expect.stringContaining(`${words}\n`)]);
    expect(member.requests('DELETE')).toEqual([]);
    member.delete('/api/v1/namespaces/shop');
    expect((await orphans('--delete')).code).toBe(code);
  });

  it('keeps claims, whose data would be lost, unless it is told to', async () => {
    copy('persistentvolumeclaims', 'PersistentVolumeClaim', 'data');
    expect((await orphans('--delete')).stdout).toMatch(
      /^persistentvolumeclaim\/data of .* stays: its data would be lost/m,
    );
    expect(names('persistentvolumeclaims')).toEqual(['data']);
    await orphans('--delete', '--delete-claims');
    expect(names('persistentvolumeclaims')).toEqual([]);
  });

  describe('and had claims', () => {
    beforeEach(() => {
      copy('persistentvolumeclaims', 'PersistentVolumeClaim', 'data', { claimOf: 'claim-1' });
    });

    it.each([
      ['bound', 'claim-1', {}],
      ['of another claim by now, if its annotation was changed', 'other', { 'spillway.dev/member-claim-uid': 'm-6' }],
    ])('keeps data for which a volume of this cluster stands, %s, whatever it is told', async (_what, uid, marks) => {
      expect(member.objects.get('/api/v1/namespaces/shop/persistentvolumeclaims/data')?.metadata.uid).toBe('m-6');
      volume('pvc-1', uid, memberUid, marks);
      expect((await orphans('-o', 'wide')).stdout).toMatch(
        /though volume pvc-1 here stands for its data: join it again as east, or first delete claim shop\/data and that volume here$/m,
      );
      for (const words of [[], ['--delete-claims']]) {
        const { code, stdout } = await orphans('--delete', ...words);
        expect(code).toBe(5);
        expect(stdout).toMatch(/^persistentvolumeclaim\/data of .* stays: .*volume pvc-1 .* join it again as east/m);
        expect(stdout).not.toContain('--delete-claims');
      }
      expect(names('persistentvolumeclaims')).toEqual(['data']);
    });

    it('takes no volume for theirs that stands for data in another cluster, or is of others', async () => {
      volume('pvc-1', 'claim-1', 'another');
      send(host, '/api/v1/persistentvolumes', 'PersistentVolume', 'nfs', {
        spec: { claimRef: { uid: 'claim-1' } },
      } as object);
      await orphans('--delete', '--delete-claims');
      expect(names('persistentvolumeclaims')).toEqual([]);
    });

    it('keeps them all where it may not be known for which a volume stands', async () => {
      host.fault = ({ path }) =>
        path === '/api/v1/persistentvolumes' ? { code: 403, reason: 'Forbidden' } : undefined;
      expect((await orphans()).code).toBe(5);
      const { code, stdout } = await orphans('--delete', '--delete-claims');
      expect([code, stdout]).toEqual([
        5,
        expect.stringMatching(/^persistentvolumeclaim\/data of .* stays: .*as you may not list persistentvolumes/m),
      ]);
      expect(names('persistentvolumeclaims')).toEqual(['data']);
    });
  });

  it('tells of pods that have not ended in time', async () => {
    const path = '/api/v1/namespaces/shop/pods/web';
    const body = { metadata: { finalizers: ['example.com/held'] } };
    member.handle({ method: 'PATCH', path, query: {}, body, contentType: 'application/merge-patch+json' });
    const { code, stdout } = await orphans('--delete', '--timeout', '1');
    expect([code, stdout]).toEqual([5, expect.stringMatching(/^pod\/web of .* stays: it has not ended within 1 s$/m)]);
  });

  it('deletes nothing while a pod runs there that is still in the host', async () => {
    const uid = send(host, '/api/v1/namespaces/shop/pods', 'Pod', 'api');
    copy('pods', 'Pod', 'api', { uid });
    expect((await orphans('-o', 'wide')).stdout).toMatch(/though the pod that it runs for is there$/m);
    const { code, notes } = await orphans('--delete');
    expect([code, notes]).toEqual([1, expect.stringContaining('fix: kubectl spillway join')]);
    expect(member.requests('DELETE')).toEqual([]);
  });

  it('deletes nothing while it is not known for which cluster a MemberCluster stands', async () => {
    register();
    const { code, notes } = await orphans('--delete');
    expect([code, notes]).toEqual([1, expect.stringContaining('these MemberClusters stand: east')]);
    expect(member.requests('DELETE')).toEqual([]);
  });
});

describe('of a member', () => {
  beforeEach(() => {
    register({ identity: memberUid });
    copy('secrets', 'Secret', 'key');
    copy('pods', 'Pod', 'web', { uid: send(host, '/api/v1/namespaces/shop/pods', 'Pod', 'web') });
  });

  it('lists pods whose pods in the host are gone', async () => {
    expect(await orphans()).toMatchObject({ code: 0, stdout: '', notes: 'Nothing of this cluster is left there.' });
    copy('pods', 'Pod', 'old');
    const { code, stdout } = await orphans('-o', 'name');
    expect([code, stdout]).toEqual([5, 'pod/old\n']);
  });

  it('deletes nothing, which is for its manager', async () => {
    copy('pods', 'Pod', 'old');
    const { code, notes } = await orphans('--delete');
    expect([code, notes]).toEqual([1, expect.stringContaining('is member east')]);
    expect(member.requests('DELETE')).toEqual([]);
  });
});

it('takes no cluster for a member of itself, and wants to know which one is meant', async () => {
  const terminal = new FakeTerminal({ env: { HOME: folder } });
  const kubeconfig = join(folder, 'kubeconfig');
  expect(await runProgram(['orphans', '--kubeconfig', kubeconfig, '--member-context', 'host'], terminal)).toBe(2);
  expect(await runProgram(['orphans', '--kubeconfig', kubeconfig], terminal)).toBe(2);
  expect(terminal.notes.join('\n')).toMatch(/lead to the same cluster[^]*name its --member-context/);
});
