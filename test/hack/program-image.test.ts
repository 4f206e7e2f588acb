import { gunzipSync } from 'node:zlib';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run } from '../../hack/command.ts';
import { ociLayout } from '../../hack/oci-layout.ts';
import { shippedPackages, type Lock } from '../../hack/program-image.ts';
import { makeTar, sha256 } from '../../hack/tar.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'image-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

test('tar takes paths of packages within packages', async () => {
  const path = `app/node_modules/@scope/package/${'folder/'.repeat(12)}file.js`;
  expect(path.length).toBeGreaterThan(100);
  const file = join(folder, 'long.tar');
  writeFileSync(file, makeTar([{ type: 'file', path, mode: 0o644, content: Buffer.from('x') }]));
  expect((await run('tar', ['-tf', file])).trim()).toBe(path);
  expect(() => makeTar([{ type: 'file', path: 'x'.repeat(101), mode: 0o644, content: Buffer.from('') }])).toThrow(
    /too long/,
  );
});

test('what is shipped is what the program needs when it runs', () => {
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock;
  const shipped = shippedPackages(lock);
  const { dependencies, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<string, object>;
  for (const name of Object.keys(dependencies ?? {})) expect(shipped).toContain(`node_modules/${name}`);
  // Types come with what is typed by them; their files are left out.
  const tools = Object.keys(devDependencies ?? {}).filter((name) => !name.startsWith('@types/'));
  for (const name of tools) expect(shipped).not.toContain(`node_modules/${name}`);
});

describe('an OCI layout', () => {
  const layer = makeTar([{ type: 'file', path: 'a', mode: 0o644, content: Buffer.from('a') }]);
  const image = {
    name: 'example.test/a:1',
    layers: [layer],
    config: { User: '1:1', Entrypoint: ['/a'], Cmd: [], Env: [], WorkingDir: '/', Labels: {} },
  };

  test('is the same for the same content', () => {
    expect(sha256(ociLayout(image))).toBe(sha256(ociLayout(structuredClone(image))));
  });

  test('leads from its index to layers, each by its digest', async () => {
    const file = join(folder, 'image.tar');
    writeFileSync(file, ociLayout(image, 'amd64'));
    await run('tar', ['-xf', file, '-C', folder]);
    const blobs = join(folder, 'blobs/sha256');
    for (const name of readdirSync(blobs)) expect(sha256(readFileSync(join(blobs, name)))).toBe(name);
    type Descriptor = { digest: string; size: number };
    const blob = ({ digest, size }: Descriptor): Buffer => {
      const content = readFileSync(join(blobs, digest.replace('sha256:', '')));
      expect(content.length).toBe(size);
      return content;
    };
    const json = (from: Buffer): unknown => JSON.parse(from.toString());
    const index = json(readFileSync(join(folder, 'index.json'))) as { manifests: [Descriptor] };
    const manifest = json(blob(index.manifests[0])) as { config: Descriptor; layers: [Descriptor] };
    expect(index.manifests[0]).toMatchObject({ annotations: { 'io.containerd.image.name': 'example.test/a:1' } });
    expect(gunzipSync(blob(manifest.layers[0])).equals(layer)).toBe(true);
    expect(json(blob(manifest.config))).toMatchObject({
      architecture: 'amd64',
      config: { User: '1:1' },
      rootfs: { diff_ids: [`sha256:${sha256(layer)}`] },
    });
  });
});
