import { ALLOW_HOST_LABEL, HOST_LABEL } from '../api/marks.ts';
import { cleanText } from '../kube/clean-text.ts';
import { isNotFound } from '../kube/errors.ts';
import type { KubeObject } from '../kube/object.ts';
import { NAMESPACES, PODS } from '../kube/resource.ts';
import { get, patch } from '../kube/verbs.ts';
import { takeAway } from './apply.ts';
import { dryRunOption, dryRunWords, type DryRun } from './flags.ts';
import { grantRecords, recordOf } from './grant-record.ts';
import { nameOf } from './known-kinds.ts';
import { lendingObjects, revocableObjects } from './member-grant.ts';
import type { Terminal } from './terminal.ts';
import type { Viewer } from './viewer.ts';

/**
 * Takes away what join granted a host in a member. The account, its roles and what holds them to what the host made are those of all
 * hosts: they stay as long as another host has joined, or has anything there. Namespaces that were lent stay, without the mark that
 * lends them. Throws CliError.
 */
export async function takeGrantAway(member: Viewer, hostId: string, dryRun: DryRun, terminal: Terminal): Promise<void> {
  const records = await grantRecords(member);
  const ours = records.find((record) => record.hostId === hostId);
  if (ours === undefined) {
    terminal.note(
      'note: the account that the host has there was made without join: whoever made it takes it away (manifests/member)',
    );
    return;
  }
  const others = new Map(records.filter(({ hostId: id }) => id !== hostId).map((record) => [record.hostId, record]));
  const stillLent = new Set([...others.values()].flatMap(({ lent }) => lent));
  for (const namespace of ours.lent) await lendNoMore(member, namespace, hostId, dryRun, terminal);
  const hosts = new Set([...others.keys(), ...(await hostsSeen(member, hostId))]);
  const isLast = hosts.size === 0;
  // What remembers the rest goes last, with its namespace where that goes: until then this can be repeated.
  const objects = isLast
    ? revocableObjects(ours.lent)
    : [...ours.lent.filter((namespace) => !stillLent.has(namespace)).flatMap(lendingObjects), recordOf(ours)];
  for (const object of objects) {
    if (await takeAway(member, object, dryRun)) terminal.out(`${nameOf(object)} deleted${dryRunWords(dryRun)}\n`);
  }
  if (isLast) return;
  const named = [...hosts].toSorted().map((id) => cleanText(id, 63));
  terminal.note(`note: account and roles stay there, as other hosts use them too: ${named.join(', ')}`);
}

/** Ids of hosts that have anything there: such as may have been let in without join. */
async function hostsSeen(member: Viewer, hostId: string): Promise<string[]> {
  const found: string[] = [];
  for (const resource of [NAMESPACES, PODS]) {
    const objects = await member.list(resource, { labelSelector: HOST_LABEL });
    found.push(...objects.map(({ metadata }) => metadata.labels?.[HOST_LABEL] ?? hostId));
  }
  return found.filter((id) => id !== hostId);
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
