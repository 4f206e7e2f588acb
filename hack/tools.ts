import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from './repository.ts';

/** A Go module under hack/tools that pins one project and everything it needs. */
interface ToolModule {
  /** Folder under hack/tools. */
  folder: string;
  /** The Go module whose version is the version of the tools. */
  pin: string;
}

const KUBERNETES: ToolModule = { folder: 'kubernetes', pin: 'k8s.io/kubernetes' };
const ETCD: ToolModule = { folder: 'etcd', pin: 'go.etcd.io/etcd/server/v3' };
const KWOK: ToolModule = { folder: 'kwok', pin: 'sigs.k8s.io/kwok' };
const METRICS_SERVER: ToolModule = { folder: 'metrics-server', pin: 'sigs.k8s.io/metrics-server' };

/** Every program we can run, and the Go package it is built from. */
const TOOLS = {
  'kube-apiserver': { module: KUBERNETES, package: 'k8s.io/kubernetes/cmd/kube-apiserver' },
  'kube-controller-manager': { module: KUBERNETES, package: 'k8s.io/kubernetes/cmd/kube-controller-manager' },
  'kube-scheduler': { module: KUBERNETES, package: 'k8s.io/kubernetes/cmd/kube-scheduler' },
  kubectl: { module: KUBERNETES, package: 'k8s.io/kubernetes/cmd/kubectl' },
  kubelet: { module: KUBERNETES, package: 'k8s.io/kubernetes/cmd/kubelet' },
  'kube-proxy': { module: KUBERNETES, package: 'k8s.io/kubernetes/cmd/kube-proxy' },
  agnhost: { module: KUBERNETES, package: 'k8s.io/kubernetes/test/images/agnhost' },
  etcd: { module: ETCD, package: 'go.etcd.io/etcd/server/v3' },
  kwok: { module: KWOK, package: 'sigs.k8s.io/kwok/cmd/kwok' },
  'metrics-server': { module: METRICS_SERVER, package: 'sigs.k8s.io/metrics-server/cmd/metrics-server' },
} as const satisfies Record<string, { module: ToolModule; package: string }>;

export type ToolName = keyof typeof TOOLS;

export interface Tool {
  name: ToolName;
  /** Folder with the go.mod. */
  moduleDir: string;
  /** Go package path of the main package. */
  package: string;
  /** As in go.mod, with the `v`. */
  version: string;
  goFlags: string[];
  /** Changes when anything that makes the binary another one changes. */
  cacheKey: string;
}

/** What every control plane needs; kubelet, agnhost and metrics-server only when asked for. */
export const CONTROL_PLANE_TOOLS: readonly ToolName[] = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubectl',
];

export function isToolName(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}

export function describeTool(name: ToolName): Tool {
  const { module, package: goPackage } = TOOLS[name];
  const moduleDir = join(repositoryRoot(), 'hack', 'tools', module.folder);
  const version = pinnedVersion(readFileSync(join(moduleDir, 'go.mod'), 'utf8'), module.pin);
  const goFlags = ['-trimpath', '-buildvcs=false', '-ldflags', ['-s', '-w', ...stamps(module, version)].join(' ')];
  const hash = createHash('sha256')
    .update(readFileSync(join(moduleDir, 'go.sum')))
    .update(JSON.stringify([goFlags, process.platform, process.arch]))
    .digest('hex');
  return { name, moduleDir, package: goPackage, version, goFlags, cacheKey: `${module.folder}-${hash.slice(0, 12)}` };
}

/** The version of `module` in a go.mod's require block or line. */
export function pinnedVersion(goMod: string, module: string): string {
  for (const line of goMod.split('\n')) {
    const [path, version] = line
      .replace(/^require /, '')
      .trim()
      .split(/\s+/);
    if (path === module && version?.startsWith('v') === true) return version;
  }
  throw new Error(`go.mod does not require ${module}`);
}

/** Module archives carry no version; without the stamps a kubelet reports v0.0.0. */
function stamps(module: ToolModule, version: string): string[] {
  if (module === KWOK) return [`-X sigs.k8s.io/kwok/pkg/consts.Version=${version}`];
  if (module !== KUBERNETES) return [];
  const [major, minor] = version.slice(1).split('.');
  return ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'].flatMap((target) => [
    `-X ${target}.gitVersion=${version}`,
    `-X ${target}.gitMajor=${major}`,
    `-X ${target}.gitMinor=${minor}`,
    `-X ${target}.gitTreeState=clean`,
  ]);
}
