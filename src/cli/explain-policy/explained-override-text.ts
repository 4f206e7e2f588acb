import { someOf } from '../../kube/some-of.ts';
import { table } from '../table.ts';
import type { ExplainedOverride, OverriddenWorkload } from './explained-override.ts';

/** So many fields of a pod are named. */
const MAX_FIELDS = 6;

/** The policy for people. */
export function explainedOverrideText(explained: ExplainedOverride): string {
  const { policy, namespace, applyTo, problems, warnings, clusters, workloads, notes } = explained;
  const where = namespace === null ? '' : ` in ${namespace}`;
  if (problems.length > 0) {
    return `${policy}${where} cannot be used as it is, and is not followed:\n${lines(problems)}`;
  }
  const who =
    applyTo === 'RunningPods'
      ? 'Pods that run in a member follow it, too (applyTo: RunningPods).'
      : 'It is for pods that come from now on; those that run keep what they were made with (applyTo: NewPods).';
  const places = table(clusters, [
    { name: 'CLUSTER', text: ({ cluster }) => cluster },
    { name: 'RULES', text: ({ says }) => says },
  ]);
  const matched = table(grouped(workloads), [
    { name: 'NAMESPACE', text: (one) => one.namespace },
    { name: 'WORKLOAD', text: ({ workload }) => workload },
    { name: 'CLUSTERS', text: (one) => one.clusters.join(',') },
    { name: 'SAYS', text: ({ says }) => says },
  ]);
  const nothing = 'It matches no workload that is there now, in a member that a rule is for.\n';
  const odd = warnings.length === 0 ? '' : `\nNot consistent:\n${lines(warnings)}`;
  const said = notes.map((note) => `note: ${note}\n`).join('');
  return `${policy}${where}\n${who}\n\n${places}\n${workloads.length === 0 ? nothing : matched}${odd}${said}`;
}

/** A workload once for all members where the same becomes of it. */
function grouped(
  workloads: readonly OverriddenWorkload[],
): { namespace: string; workload: string; clusters: string[]; says: string }[] {
  const groups = new Map<string, { namespace: string; workload: string; clusters: string[]; says: string }>();
  for (const one of workloads) {
    const { namespace, workload, cluster } = one;
    const says = inWords(one);
    // Refusals name the cluster.
    const key = [namespace, workload, says].join('\n');
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { namespace, workload, clusters: [cluster], says });
    else group.clusters.push(cluster);
  }
  return [...groups.values()];
}

function inWords({ workload, changes, refused }: OverriddenWorkload): string {
  const what = /^(ConfigMap|PersistentVolumeClaim)\//.exec(workload)?.[1];
  if (refused !== null) return what === undefined ? `no pod is made: ${refused}` : `pods that need it wait: ${refused}`;
  const fields = changes.flatMap((change) => change.fields);
  if (fields.length === 0) return 'changes nothing';
  const counting = fields.filter(({ overruledBy }) => overruledBy === null).map(({ path }) => path);
  const overruled = fields.filter(({ overruledBy }) => overruledBy !== null);
  const shared = fields.filter(({ changedAgainBy }) => changedAgainBy !== null);
  const words = [
    ...(counting.length === 0 ? [] : [`changes ${listed(counting)}`]),
    ...[...new Set(overruled.map(({ overruledBy }) => overruledBy))].map((by) => {
      const paths = overruled.filter((one) => one.overruledBy === by).map(({ path }) => path);
      return `${listed(paths)}: ${by ?? ''} comes later and wins`;
    }),
    ...[...new Set(shared.map(({ changedAgainBy }) => changedAgainBy))].map((by) => {
      const paths = shared.filter((one) => one.changedAgainBy === by).map(({ path }) => path);
      return `${listed(paths)}: changed again by ${by ?? ''}`;
    }),
  ];
  return words.join('; ');
}

function listed(paths: readonly string[]): string {
  return someOf([...new Set(paths)], MAX_FIELDS);
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `  ${text}\n`).join('');
}
