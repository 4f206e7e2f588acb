import { openApiSchema } from '../../src/api/crd.ts';
import { atGangPlace } from '../../src/api/gang-place.ts';
import { KINDS } from '../../src/api/kinds.ts';
import { GANG_LABEL, GANG_TIMEOUT_ANNOTATION } from '../../src/api/marks.ts';
import { Cli } from '../../src/cli/cli.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { givenPlace } from '../../src/scheduler/gangs/gang.ts';
import { hostPod } from '../fixtures/pods.ts';

/** What may be left out of moves beside the fields of specs, and what holds then. */
export const MORE_KNOBS: readonly { of: string; field: string; value: string }[] = [
  { of: 'MemberCluster', field: 'spec.capacity.elastic[].leadTimeSeconds', value: leadTime() },
  { of: 'annotation', field: GANG_TIMEOUT_ANNOTATION, value: gangTimeout() },
  ...['move', 'rebalance'].flatMap(secondsOf),
];

/** It is in a list. */
function leadTime(): string {
  const kind = KINDS.find(({ resource }) => resource.kind === 'MemberCluster');
  const spec = kind && openApiSchema(kind.schema).properties?.['spec'];
  const elastic = spec?.properties?.['capacity']?.properties?.['elastic'];
  return String(elastic?.items?.properties?.['leadTimeSeconds']?.default);
}

function gangTimeout(): string {
  const pod = hostPod({ metadata: { name: 'a', labels: { [GANG_LABEL]: 'g' } }, spec: { nodeName: '' } });
  const { timeoutMs = NaN } = givenPlace(atGangPlace(pod, 'east', 0), 0) ?? {};
  return String(timeoutMs / 1_000);
}

/** Flags of a verb that have a number. */
function secondsOf(verb: string): { of: string; field: string; value: string }[] {
  const signal = new AbortController().signal;
  const silent = { out: () => undefined, note: () => undefined, isTty: { out: false, err: false }, env: {} };
  const { commands } = buildProgram(new Cli({ ...silent, signal, now: () => 0 }));
  const flags = commands.find((one) => one.name() === verb)?.options ?? [];
  return flags.flatMap(({ long, defaultValue }) =>
    typeof defaultValue === 'number'
      ? [{ of: 'command', field: `${verb} ${long ?? ''}`, value: String(defaultValue) }]
      : [],
  );
}
