import { ALLOW_HOST_LABEL } from '../api/marks.ts';
import { isNotFound } from '../kube/errors.ts';
import type { KubeObject } from '../kube/object.ts';
import { NAMESPACES, SERVICE_ACCOUNTS } from '../kube/resource.ts';
import { get, patch } from '../kube/verbs.ts';
import { takeAway } from './apply.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { dryRunOption, dryRunWords, type DryRun } from './flags.ts';
import { grantRecords, recordOf, type GrantRecord } from './grant-record.ts';
import { ANY, firstOf, marksOfOthers, type HostMark } from './host-marks.ts';
import { nameOf } from './known-kinds.ts';
import type { ManifestObject } from './manifests.ts';
import {
  dedicatedObjects,
  lendingObjects,
  MEMBER_ACCOUNT,
  OPTIONAL_GRANTS,
  optionalObjects,
  revocableObjects,
  type OptionalGrant,
} from './member-grant.ts';
import { kindsThatStay, whyItStays } from './multi-cluster-kinds.ts';
import { isPerhapsOfOwner } from './owner-limits.ts';
import type { Terminal } from './terminal.ts';
import type { Viewer } from './viewer.ts';

/**
 * Takes away what join granted a host in a member. The account, its roles and what holds them to what the host made are those of all
 * hosts: they stay as long as another host has joined, or has anything there, which is a finding. Namespaces that were lent stay,
 * without the mark that lends them, and with what limits them there unless join made it. Throws CliError.
 */
export async function takeGrantAway(
  member: Viewer,
  hostId: string,
  dryRun: DryRun,
  terminal: Terminal,
): Promise<ExitCode> {
  const records = await grantRecords(member);
  const ours = records.find((record) => record.hostId === hostId);
  const others = records.filter((record) => record !== ours);
  if (ours === undefined) {
    if (others.length > 0) return noteOthers(others, [], [], terminal);
    const account = await member.tryGet<KubeObject>(SERVICE_ACCOUNTS, MEMBER_ACCOUNT);
    terminal.note(
      account === undefined
        ? 'note: nothing that a host was granted is there any more'
        : 'note: the account that the host has there was made without join: whoever made it takes it away (manifests/member)',
    );
    return EXIT.ok;
  }
  const marks = await marksOfOthers(member, hostId, ours.lent);
  for (const namespace of ours.lent) await lendNoMore(member, namespace, hostId, dryRun, terminal);
  const isLast = others.length === 0 && marks.length === 0;
  // What remembers the rest goes last, with its namespace where that goes: until then this can be repeated.
  const objects = isLast ? revocableObjects(ours.lent) : [...ownRights(ours, others, marks), recordOf(ours)];
  for (const object of objects) {
    if (await isPerhapsOfOwner(member, object)) {
      terminal.note(
        `note: ${nameOf(object)} in namespace ${object.metadata.namespace} stays: nothing shows that join made it, and who does not want it may delete it`,
      );
    } else if (await takeAway(member, object, dryRun))
      terminal.out(`${nameOf(object)} deleted${dryRunWords(dryRun)}\n`);
  }
  if (isLast && ours.multiCluster) for (const kind of await kindsThatStay(member)) terminal.note(whyItStays(kind));
  return isLast ? EXIT.ok : noteOthers(others, marks, perhapsUnused(ours, others, marks), terminal);
}

/** What the account has for this host alone. What a host needs that has no record is not known: it may be anything. */
function ownRights(ours: GrantRecord, others: readonly GrantRecord[], marks: readonly HostMark[]): ManifestObject[] {
  const stillLent = new Set([...others.flatMap(({ lent }) => lent), ...marks.map(({ lends }) => lends)]);
  return [
    ...ownGrants(ours, others, marks).flatMap(optionalObjects),
    ...(isAllKnown(others, marks) && isOurs('dedicated', ours, others) ? dedicatedObjects() : []),
    ...ours.lent.filter((namespace) => !stillLent.has(namespace)).flatMap(lendingObjects),
  ];
}

/**
 * Of what is optional only the kubelets, while another host has joined: the rest may have been applied for that one by hand, as files
 * of their own, which its record does not tell.
 */
function ownGrants(ours: GrantRecord, others: readonly GrantRecord[], marks: readonly HostMark[]): OptionalGrant[] {
  if (!isAllKnown(others, marks)) return [];
  return OPTIONAL_GRANTS.filter((one) => isOurs(one, ours, others) && (others.length === 0 || one === 'nodeMetrics'));
}

/** ClusterRoleBindings that stay although no record of another host tells that it needs them. */
function perhapsUnused(ours: GrantRecord, others: readonly GrantRecord[], marks: readonly HostMark[]): string[] {
  const goes = ownGrants(ours, others, marks);
  return OPTIONAL_GRANTS.filter((one) => isOurs(one, ours, others) && !goes.includes(one))
    .flatMap(optionalObjects)
    .filter(({ kind }) => kind === 'ClusterRoleBinding')
    .map(({ metadata }) => metadata.name);
}

function isOurs(what: 'dedicated' | OptionalGrant, ours: GrantRecord, others: readonly GrantRecord[]): boolean {
  return ours[what] && !others.some((other) => other[what]);
}

function isAllKnown(others: readonly GrantRecord[], marks: readonly HostMark[]): boolean {
  return marks.every((mark) => mark.hostId === ANY || others.some(({ hostId }) => hostId === mark.hostId));
}

/** Why rights stay, and what that means. `unused`: names of ClusterRoleBindings. */
function noteOthers(
  others: readonly GrantRecord[],
  marks: readonly HostMark[],
  unused: readonly string[],
  terminal: Terminal,
): ExitCode {
  const hosts = new Map<string, string[]>(
    others.map((record) => [record.hostId, [`configmap/${recordOf(record).metadata.name}`]]),
  );
  const joined = new Set(hosts.keys());
  for (const { hostId, object } of marks) {
    if (!joined.has(hostId)) hosts.set(hostId, [...(hosts.get(hostId) ?? []), object]);
  }
  const named = [...hosts].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const { namespace, name } = MEMBER_ACCOUNT;
  terminal.note(
    `note: account and roles stay there, as other hosts use them too: ${named.map(([id, objects]) => `${id} (${firstOf(objects)})`).join(', ')}`,
  );
  terminal.note(
    `note: so whoever has a token of the host that left can go on with it, and renew it. In the member, kubectl delete serviceaccount -n ${namespace} ${name} ends all ` +
      'tokens at once, those of the other hosts too, which join again then; what no host needs any more goes with the last host that leaves, or by hand',
  );
  if (unused.length > 0) {
    terminal.note(
      `note: the host that left was granted more, which another one may use by now. If none does: kubectl delete clusterrolebinding ${unused.join(' ')} there`,
    );
  }
  return EXIT.findings;
}

async function lendNoMore(
  member: Viewer,
  name: string,
  hostId: string,
  dryRun: DryRun,
  terminal: Terminal,
): Promise<void> {
  const isUnlent = await member.ask('patch namespaces', async (signal) => {
    try {
      const { metadata } = await get<KubeObject>(member.client, NAMESPACES, { name }, { signal });
      if (metadata.labels?.[ALLOW_HOST_LABEL] !== hostId) return false;
      const body = { metadata: { uid: metadata.uid, labels: { [ALLOW_HOST_LABEL]: null } } };
      const how = { type: 'merge', fieldManager: 'kubectl-spillway' } as const;
      if (dryRun !== 'client')
        await patch<KubeObject>(member.client, NAMESPACES, { name }, body, how, { signal, ...dryRunOption(dryRun) });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  });
  if (isUnlent) terminal.out(`namespace/${name} labeled${dryRunWords(dryRun)}\n`);
}
