import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
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
/**
 * Other minor versions of Kubernetes that members may have, the oldest and the newest: control planes only, each with a module of its own
 * (hack/tools/kubernetes-1.33) that pins its patch release.
 */
export const OTHER_VERSIONS = ['1.33', '1.37'] as const;
export type OtherVersion = (typeof OTHER_VERSIONS)[number];

/** What differs between clusters of two versions; etcd, kubectl and kwok are the same for all. */
export const VERSIONED_TOOLS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;

const ETCD: ToolModule = { folder: 'etcd', pin: 'go.etcd.io/etcd/server/v3' };
const KWOK: ToolModule = { folder: 'kwok', pin: 'sigs.k8s.io/kwok' };
const E2E: ToolModule = { folder: 'e2e', pin: 'k8s.io/kubernetes' };
const GINKGO: ToolModule = { folder: 'e2e', pin: 'github.com/onsi/ginkgo/v2' };
const VIRTUAL_KUBELET: ToolModule = { folder: 'virtual-kubelet', pin: 'github.com/virtual-kubelet/virtual-kubelet' };
const COREDNS: ToolModule = { folder: 'coredns', pin: 'github.com/coredns/coredns' };
const METRICS_SERVER: ToolModule = { folder: 'metrics-server', pin: 'sigs.k8s.io/metrics-server' };
const HELM: ToolModule = { folder: 'helm', pin: 'helm.sh/helm/v4' };
const PROMETHEUS: ToolModule = { folder: 'prometheus', pin: 'github.com/prometheus/prometheus' };
const LUA: ToolModule = { folder: 'lua', pin: 'github.com/yuin/gopher-lua' };

interface ToolSource {
  module: ToolModule;
  package: string;
  /** The package's tests, compiled to a program. */
  tests?: true;
  /** Build tags. */
  tags?: string;
}

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
  // With a main of its own (hack/tools/coredns/main.go): the plugins that are wanted build in a fraction of the time.
  coredns: { module: COREDNS, package: 'spillway.dev/hack/tools/coredns' },
  helm: { module: HELM, package: 'helm.sh/helm/v4/cmd/helm' },
  // Without what finds machines in twenty clouds, which rules do not need: a tenth of the time to build.
  promtool: { module: PROMETHEUS, package: 'github.com/prometheus/prometheus/cmd/promtool', tags: 'remove_all_sd' },
  // The Lua of Argo CD.
  glua: { module: LUA, package: 'github.com/yuin/gopher-lua/cmd/glua' },
  'e2e.test': { module: E2E, package: 'k8s.io/kubernetes/test/e2e', tests: true },
  ginkgo: { module: GINKGO, package: 'github.com/onsi/ginkgo/v2/ginkgo' },
  'virtual-kubelet.test': {
    module: VIRTUAL_KUBELET,
    package: 'github.com/virtual-kubelet/virtual-kubelet/internal/test/e2e',
    tests: true,
    tags: 'e2e',
  },
} as const satisfies Record<string, ToolSource>;

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
  /** Arguments of `go` before the flags. */
  goCommand: string[];
  /** Changes when anything that makes the binary another one changes. */
  cacheKey: string;
}

/** What every control plane needs; the others only when asked for. */
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

export function isOtherVersion(text: string): text is OtherVersion {
  return OTHER_VERSIONS.some((version) => version === text);
}

/** @param other a minor version for one of {@link VERSIONED_TOOLS}; default the version of this project's own clusters. */
export function describeTool(name: ToolName, other?: OtherVersion): Tool {
  const { module: own, package: goPackage, tests, tags }: ToolSource = TOOLS[name];
  const module = other === undefined ? own : { ...KUBERNETES, folder: `${KUBERNETES.folder}-${other}` };
  const moduleDir = join(repositoryRoot(), 'hack', 'tools', module.folder);
  const version = pinnedVersion(readFileSync(join(moduleDir, 'go.mod'), 'utf8'), module.pin);
  const goCommand = tests === undefined ? ['build'] : ['test', '-c', '-vet=off'];
  const goFlags = [
    ...(tags === undefined ? [] : ['-tags', tags]),
    '-trimpath',
    '-buildvcs=false',
    '-ldflags',
    ['-s', '-w', ...stamps(module, version)].join(' '),
  ];
  const ownMain = join(moduleDir, 'main.go');
  const hash = createHash('sha256')
    .update(readFileSync(join(moduleDir, 'go.sum')))
    .update(JSON.stringify([goFlags, process.platform, process.arch]))
    .update(existsSync(ownMain) ? readFileSync(ownMain) : '')
    .digest('hex');
  const cacheKey = `${module.folder}-${hash.slice(0, 12)}`;
  return { name, moduleDir, package: goPackage, version, goCommand, goFlags, cacheKey };
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
  if (module.pin === KWOK.pin) return [`-X sigs.k8s.io/kwok/pkg/consts.Version=${version}`];
  if (module.pin === HELM.pin) return [`-X ${module.pin}/internal/version.version=${version}`];
  if (module.pin !== KUBERNETES.pin) return [];
  const [major, minor] = version.slice(1).split('.');
  return ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'].flatMap((target) => [
    `-X ${target}.gitVersion=${version}`,
    `-X ${target}.gitMajor=${major}`,
    `-X ${target}.gitMinor=${minor}`,
    `-X ${target}.gitTreeState=clean`,
  ]);
}
