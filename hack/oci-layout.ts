import { gzipSync } from 'node:zlib';
import { makeTar, sha256, type TarEntry } from './tar.ts';

export interface OciImage {
  /** With its tag. */
  name: string;
  layers: readonly Uint8Array[];
  config: {
    User: string;
    Entrypoint: readonly string[];
    Cmd: readonly string[];
    Env: readonly string[];
    WorkingDir: string;
    Labels: Readonly<Record<string, string>>;
  };
}

const JSON_OF = 'application/vnd.oci.image';

/** An image as a tar of the OCI image layout, that depends on what is in it alone: no times, layers compressed. */
export function ociLayout({ name, layers, config }: OciImage, architecture = goArchitecture()): Buffer {
  const blobs = new Map<string, Uint8Array>();
  const blob = (mediaType: string, content: Uint8Array): object => {
    const digest = sha256(content);
    blobs.set(digest, content);
    return { mediaType, digest: `sha256:${digest}`, size: content.length };
  };
  const json = (kind: string, content: object): object =>
    blob(`${JSON_OF}.${kind}.v1+json`, Buffer.from(JSON.stringify(content)));
  const manifest = json('manifest', {
    schemaVersion: 2,
    mediaType: `${JSON_OF}.manifest.v1+json`,
    config: json('config', {
      architecture,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: layers.map((layer) => `sha256:${sha256(layer)}`) },
    }),
    layers: layers.map((layer) => blob(`${JSON_OF}.layer.v1.tar+gzip`, gzipSync(layer, { level: 6 }))),
  });
  const annotations = {
    'io.containerd.image.name': name,
    'org.opencontainers.image.ref.name': name.slice(name.lastIndexOf(':') + 1),
  };
  const index = {
    schemaVersion: 2,
    mediaType: `${JSON_OF}.index.v1+json`,
    manifests: [{ ...manifest, platform: { architecture, os: 'linux' }, annotations }],
  };
  const file = (path: string, content: Uint8Array): TarEntry => ({ type: 'file', path, mode: 0o644, content });
  return makeTar([
    file('oci-layout', Buffer.from(JSON.stringify({ imageLayoutVersion: '1.0.0' }))),
    file('index.json', Buffer.from(JSON.stringify(index))),
    ...[...blobs].map(([digest, content]) => file(`blobs/sha256/${digest}`, content)),
  ]);
}

function goArchitecture(): string {
  return process.arch === 'x64' ? 'amd64' : process.arch;
}
