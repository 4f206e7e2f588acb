import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cacheFolder, ensureBinaries, type BinarySource } from '../../hack/binaries.ts';
import { lineWith } from '../../hack/download.ts';
import { describeTool, OTHER_VERSIONS, pinnedVersion, VERSIONED_TOOLS } from '../../hack/tools.ts';

let dir = '';
let env: NodeJS.ProcessEnv = {};
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'binaries-test-'));
  env = { XDG_CACHE_HOME: join(dir, 'cache') };
});
afterEach(() => rmSync(dir, { recursive: true }));

function put(path: string, mode = 0o755): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, 'a program');
  chmodSync(path, mode);
  return path;
}

const makes: BinarySource = (_tool, target) => {
  put(target);
  return Promise.resolve('done');
};
const never: BinarySource = (tool) => Promise.reject(new Error(`nobody should ask for ${tool.name}`));
const refuses =
  (because: string): BinarySource =>
  () =>
    Promise.resolve({ because });

describe('order', () => {
  test('a named folder first, then KUBEBUILDER_ASSETS, then the cache, then the sources', async () => {
    const cached = join(cacheFolder(env), describeTool('etcd').cacheKey, 'etcd');
    const given = { ...env, SPILLWAY_BINARIES: join(dir, 'mine'), KUBEBUILDER_ASSETS: join(dir, 'assets') };
    const look = async (source: BinarySource): Promise<string> =>
      (await ensureBinaries(['etcd'], { env: given, sources: [source] })).etcd;
    expect(await look(makes)).toBe(cached);
    expect(await look(never)).toBe(cached);
    const assets = put(join(dir, 'assets', 'etcd'));
    expect(await look(never)).toBe(assets);
    // Not executable: as good as not there.
    const mine = put(join(dir, 'mine', 'etcd'), 0o644);
    expect(await look(never)).toBe(assets);
    chmodSync(mine, 0o755);
    expect(await look(never)).toBe(mine);
  });

  test('the next source is asked when one cannot', async () => {
    const { kwok } = await ensureBinaries(['kwok'], { env, sources: [refuses('no route'), makes, never] });
    expect(existsSync(kwok)).toBe(true);
  });

  test('when none can, the message tells why and what to do, and nothing half-made stays', async () => {
    const half: BinarySource = (_tool, target) => {
      put(target);
      return Promise.resolve({ because: 'compiler crashed' });
    };
    const failing = ensureBinaries(['kwok'], { env, sources: [refuses('no route'), half] });
    await expect(failing).rejects.toThrow(/kwok v\S+ cannot be had: no route; compiler crashed.*SPILLWAY_BINARIES/);
    await expect(ensureBinaries(['kwok'], { env, sources: [never] })).rejects.toThrow(/nobody should ask/);
    const folder = join(cacheFolder(env), describeTool('kwok').cacheKey);
    expect(readdirSync(folder).filter((name) => name === 'kwok')).toEqual([]);
  });
});

test('of another version only the control plane is another program, and never one of a folder that does not say its version', async () => {
  const given = { ...env, SPILLWAY_BINARIES: join(dir, 'mine') };
  for (const name of ['etcd', ...VERSIONED_TOOLS]) put(join(dir, 'mine', name));
  const look = (source: BinarySource): Promise<Record<string, string>> =>
    ensureBinaries(['etcd', ...VERSIONED_TOOLS], { env: given, sources: [source], kubernetes: '1.33' });
  const cached = join(cacheFolder(env), describeTool('kube-apiserver', '1.33').cacheKey, 'kube-apiserver');
  const mine = put(join(dir, 'mine', '1.33', 'kube-scheduler'));
  const found = await look(makes);
  expect(found['etcd']).toBe(join(dir, 'mine', 'etcd'));
  expect(found['kube-apiserver']).toBe(cached);
  expect(found['kube-scheduler']).toBe(mine);
  expect(await look(never)).toEqual(found);
});

test('two that want the same at once get it made once', async () => {
  let made = 0;
  const slow: BinarySource = async (tool, target, say) => {
    made += 1;
    await new Promise((resolve) => setTimeout(resolve, 100));
    return makes(tool, target, say);
  };
  const waits: string[] = [];
  const ask = (): Promise<{ etcd: string }> =>
    ensureBinaries(['etcd'], { env, sources: [slow], say: (line) => waits.push(line) });
  const [one, two] = await Promise.all([ask(), ask()]);
  expect(one).toEqual(two);
  expect(made).toBe(1);
  expect(waits.join()).toContain('another run');
});

describe('pins', () => {
  test('versions come from go.mod', () => {
    const goMod = 'module m\n\nrequire a.io/b v1.2.3\n\nrequire (\n\tk8s.io/api v0.36.3 // indirect\n)\n';
    expect(pinnedVersion(goMod, 'a.io/b')).toBe('v1.2.3');
    expect(pinnedVersion(goMod, 'k8s.io/api')).toBe('v0.36.3');
    expect(() => pinnedVersion(goMod, 'k8s.io/ap')).toThrow(/does not require/);
  });

  test('Kubernetes programs are stamped with their version', () => {
    const { version, goFlags, cacheKey } = describeTool('kubelet');
    expect(version).toMatch(/^v1\.36\.\d+$/);
    expect(goFlags.join(' ')).toContain(`-X k8s.io/component-base/version.gitVersion=${version}`);
    expect(cacheKey).toBe(describeTool('kube-apiserver').cacheKey);
    expect(cacheKey).not.toBe(describeTool('etcd').cacheKey);
  });

  test('each other version is pinned by a module of its own', () => {
    const keys = OTHER_VERSIONS.map((other) => {
      const { version, goFlags, cacheKey } = describeTool('kube-apiserver', other);
      expect(version).toMatch(new RegExp(`^v${other.replace('.', '\\.')}\\.\\d+$`));
      expect(goFlags.join(' ')).toContain(`version.gitVersion=${version}`);
      return cacheKey;
    });
    expect(new Set([describeTool('kube-apiserver').cacheKey, ...keys]).size).toBe(OTHER_VERSIONS.length + 1);
  });
});

test('a checksum list is read by file name, in both formats of sha256sum', () => {
  const list = 'aa  etcd-linux-arm64.tar.gz\nbb *etcd-linux-amd64.tar.gz\ncc  etcd-linux-amd64.tar.gz.asc\n';
  expect(lineWith(list, 'etcd-linux-amd64.tar.gz')).toMatch(/^bb/);
  expect(lineWith(list, 'etcd-linux-s390x.tar.gz')).toBe('');
});
