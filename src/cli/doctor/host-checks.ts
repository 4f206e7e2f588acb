import { customResourceDefinition } from '../../api/crd.ts';
import type { KindDefinition } from '../../api/crd.ts';
import { conditionOf } from '../../kube/conditions.ts';
import { jsonEqual } from '../../kube/json-equal.ts';
import type { Condition } from '../../kube/core-v1.ts';
import type { KubeObject } from '../../kube/object.ts';
import { failed, ok, warning, type Finding } from './finding.ts';

const VERSIONS_PAGE = 'concepts/virtual-nodes.md#versions-of-kubernetes';
/** The oldest host whose API server knows the policies that guard it. */
const OLDEST_HOST = 30;
/** Members that were tried: so many minor versions older than their host, and newer. */
const OLDER = 3;
const NEWER = 1;
/** Differences of clocks in ms: from then on certificates and tokens may not be valid yet, and times of Leases mislead. */
const SKEW_WARNING_MS = 5_000;
const SKEW_FAILED_MS = 60_000;

/** `1.36` of `v1.36.3+k3s1`; undefined for what is no version. */
function minorOf(version: string | undefined): number | undefined {
  const minor = /^v?1\.(\d+)/.exec(version ?? '')?.[1];
  return minor === undefined ? undefined : Number(minor);
}

export function hostVersion(version: string): Finding {
  const check = 'host version';
  const minor = minorOf(version);
  if (minor !== undefined && minor >= OLDEST_HOST) return ok(check, `Kubernetes ${version}`);
  return failed(
    check,
    `Kubernetes ${version} is older than 1.${OLDEST_HOST}, and has not the policies that guard it`,
    'upgrade this cluster',
    VERSIONS_PAGE,
  );
}

/** @param members versions by member; undefined: not known yet */
export function memberVersions(host: string, members: ReadonlyMap<string, string | undefined>): Finding[] {
  const check = 'member versions';
  const own = minorOf(host);
  const odd = [...members].flatMap(([name, version]): Finding[] => {
    const minor = minorOf(version);
    if (own === undefined || minor === undefined || (minor >= own - OLDER && minor <= own + NEWER)) return [];
    return [
      warning(
        check,
        `${name} has Kubernetes ${version ?? '?'}, this cluster ${host}: tried were members up to ${OLDER} minor versions older and ${NEWER} newer`,
        'try it with pods that do no harm, or bring the two closer together',
        VERSIONS_PAGE,
      ),
    ];
  });
  return odd.length > 0 || members.size === 0 ? odd : [ok(check, 'all are within the range that was tried')];
}

/** @param server the Date header of the API server, @param local when it came, both in ms; the header is in whole seconds */
export function clockSkew(server: number, local: number): Finding {
  const check = 'clock';
  const skew = Math.abs(local - server - 500);
  const words = `the clock here and that of the API server are ${(skew / 1000).toFixed(1)} s apart`;
  if (skew < SKEW_WARNING_MS) return ok(check, words);
  const found = skew < SKEW_FAILED_MS ? warning : failed;
  return found(check, `${words}: ages that are shown here are wrong by that`, 'set the clocks by NTP');
}

/** The manager whose clock is ahead of the API server's writes Leases of the future. @param server ms */
export function managerClock(renewed: readonly string[], server: number): Finding[] {
  const ahead = Math.max(...renewed.map((time) => Date.parse(time)).filter((time) => !Number.isNaN(time)), 0) - server;
  if (ahead < SKEW_WARNING_MS) return [];
  const found = ahead < SKEW_FAILED_MS ? warning : failed;
  const apart = `${(ahead / 1000).toFixed(0)} s`;
  return [
    found(
      'clock',
      `a manager's clock is ${apart} ahead of the API server's: certificates it makes may not be valid yet`,
      'set the clocks of the nodes by NTP',
    ),
  ];
}

type Definition = KubeObject & {
  spec?: {
    versions?: {
      name?: string;
      served?: boolean;
      schema?: unknown;
      subresources?: unknown;
      additionalPrinterColumns?: unknown;
    }[];
  };
  status?: { conditions?: Condition[] };
};

/** Of the Multi-Cluster Services API, in the version that the manager speaks. */
const EXCHANGE_KINDS = ['serviceexports.multicluster.x-k8s.io', 'serviceimports.multicluster.x-k8s.io'];
const EXCHANGE_VERSION = 'v1beta1';

/** Whether this cluster has what members need that are to exchange Services with it. */
export function exchangeKindsPresent(found: readonly KubeObject[]): Finding[] {
  const check = 'kinds';
  const serving = (found as readonly Definition[]).filter(({ spec }) =>
    spec?.versions?.some(({ name, served }) => name === EXCHANGE_VERSION && served === true),
  );
  const missing = EXCHANGE_KINDS.filter((name) => !serving.some(({ metadata }) => metadata.name === name));
  if (missing.length === 0) return [ok(check, 'those of the Multi-Cluster Services API are there')];
  return [
    failed(
      check,
      `a member is to exchange Services, and ${missing.join(', ')} is not served in ${EXCHANGE_VERSION}`,
      'kubectl spillway upgrade --multi-cluster Exchange, or bring the kinds that are there to v0.5 or newer (manifests/multi-cluster/crds.yaml)',
      'concepts/multi-cluster-services.md',
    ),
  ];
}

/** Whether our kinds are there, accepted, and as this version of the program has them. */
export function kindsPresent(kinds: readonly KindDefinition[], found: readonly KubeObject[]): Finding[] {
  const check = 'kinds';
  const byName = new Map(found.map((one) => [one.metadata.name, one as Definition]));
  const findings = kinds.flatMap((kind): Finding[] => {
    const wanted = customResourceDefinition(kind);
    const { name } = wanted.metadata;
    const there = byName.get(name);
    const fix = `kubectl apply -f manifests/crds/${kind.resource.group}_${kind.resource.plural}.yaml`;
    if (there === undefined) return [failed(check, `${kind.resource.kind} (${name}) is not there`, fix)];
    const accepted = conditionOf(there, 'Established');
    if (accepted?.status !== 'True') {
      return [
        failed(check, `${name} is not established: ${accepted?.message ?? 'the API server has not accepted it'}`, fix),
      ];
    }
    if (jsonEqual(schemaOf(wanted), schemaOf(there))) return [];
    return [failed(check, `${name} is of another version than this program`, fix)];
  });
  return findings.length > 0 ? findings : [ok(check, `all ${kinds.length} are there, in the version of this program`)];
}

function schemaOf({ spec }: Pick<Definition, 'spec'>): unknown {
  return (spec?.versions ?? []).map(({ name, schema }) => ({ name, schema }));
}

/** @param status HTTP status of the metrics API: 200, 404 where nobody serves it, 503 where who serves it does not answer */
export function metricsApi(status: number): Finding {
  const check = 'metrics API';
  if (status === 200) return ok(check, 'kubectl top and autoscalers have figures');
  return warning(
    check,
    status === 404
      ? 'nobody serves metrics.k8s.io here: kubectl top and HorizontalPodAutoscalers have no figures'
      : `metrics.k8s.io does not answer (${status}): kubectl top and HorizontalPodAutoscalers have no figures`,
    status === 404 ? 'install metrics-server' : 'see kubectl get apiservice v1beta1.metrics.k8s.io',
    'reference/pod-usage.md',
  );
}
