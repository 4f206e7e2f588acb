import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import type { KubeObject } from '../kube/object.ts';
import { someOf } from '../kube/some-of.ts';
import { nodeNamesOf } from './cluster-summary.ts';
import { CliError, isNotThere } from './cli-error.ts';
import { EXIT } from './exit-code.ts';
import { didYouMean } from './near-names.ts';
import { MissingRight, type Viewer } from './viewer.ts';

/** Names that an error lists. */
const MOST_NAMED = 20;

/** A member by its name. Throws CliError: of one that is not there with those that are, and the one that was most likely meant. */
export async function memberNamed<T extends KubeObject>(host: Viewer, name: string): Promise<T> {
  try {
    return await host.get<T>(MEMBER_CLUSTERS, { name });
  } catch (error) {
    throw (await withMembersThereAre(host, name, error)) ?? error;
  }
}

/** The error of a member that is not there with what helps; undefined: it is another error, or the viewer may not know which members there are. */
export async function withMembersThereAre(host: Viewer, name: string, error: unknown): Promise<CliError | undefined> {
  if (!isNotThere(error)) return undefined;
  const members = await host.tryList<KubeObject>(MEMBER_CLUSTERS).catch(() => undefined);
  return members === undefined || members instanceof MissingRight ? undefined : noSuchMember([name], members, error);
}

/** @param names those that are none of the members' */
export function noSuchMember(names: readonly string[], members: readonly KubeObject[], cause?: unknown): CliError {
  const known = members.map(({ metadata }) => metadata.name).toSorted();
  const there = known.length === 0 ? 'there are none' : `there are ${someOf(known, MOST_NAMED)}`;
  const fixes = names.flatMap((name) => whatWasMeant(name, members, known) ?? []);
  return new CliError(`there is no member ${names.join(', ')}: ${there}`, {
    exitCode: EXIT.notFound,
    ...(fixes.length === 0 ? {} : { fix: fixes.join('; ') }),
    cause,
  });
}

function whatWasMeant(name: string, members: readonly KubeObject[], known: readonly string[]): string | undefined {
  const whole = members.find((member) => nodeNamesOf(member, undefined).includes(name))?.metadata.name;
  return whole === undefined
    ? didYouMean(name, known)
    : `${name} is a virtual node of member ${whole}: name the member; for that node alone there are kubectl cordon, uncordon and drain`;
}
