import type { Act, Acts } from './actors/act.ts';
import { API_SERVERS } from './actors/api-servers.ts';
import { CLAIMS } from './actors/claims.ts';
import { CHEATS } from './actors/cheats.ts';
import { CROWDS } from './actors/crowds.ts';
import { DELETIONS } from './actors/deletions.ts';
import { FENCING } from './actors/fencing.ts';
import { GANGS } from './actors/gangs.ts';
import { HOST_ADMINS } from './actors/host-admins.ts';
import { HOST_NODES } from './actors/host-nodes.ts';
import { SWAPS } from './actors/swaps.ts';
import { HOSTILE_MEMBERS } from './actors/hostile-members.ts';
import { DEPENDENTS } from './actors/dependents.ts';
import { DISRUPTIONS } from './actors/disruptions.ts';
import { MACHINES } from './actors/machines.ts';
import { MIGRATIONS } from './actors/migrations.ts';
import { MEMBER_OWNERS } from './actors/member-owners.ts';
import { BREAKERS } from './actors/breakers.ts';
import { NAMESPACES } from './actors/namespaces.ts';
import { NETWORKS } from './actors/networks.ts';
import { POLICIES } from './actors/policies.ts';
import { REPLICAS } from './actors/replicas.ts';
import { ROLL_OUTS } from './actors/roll-outs.ts';
import { TENANTS } from './actors/tenants.ts';
import { USERS } from './actors/users.ts';

const ACTORS = {
  ...USERS,
  ...DELETIONS,
  ...MEMBER_OWNERS,
  ...MACHINES,
  ...REPLICAS,
  ...NETWORKS,
  ...API_SERVERS,
  ...HOST_ADMINS,
  ...FENCING,
  ...DISRUPTIONS,
  ...HOSTILE_MEMBERS,
  ...SWAPS,
  ...HOST_NODES,
  ...DEPENDENTS,
  ...GANGS,
  ...MIGRATIONS,
  ...POLICIES,
  ...TENANTS,
  ...CHEATS,
  ...CROWDS,
  ...ROLL_OUTS,
  ...NAMESPACES,
  ...BREAKERS,
  ...CLAIMS,
} satisfies Acts;

export type StepKind = keyof typeof ACTORS;

/** All that may happen between two moments of rest. */
export const STEPS = Object.fromEntries(Object.entries(ACTORS).map(([kind, { act }]) => [kind, act])) as Record<
  StepKind,
  Act
>;

/** How often each comes; a history makes some of them more likely and leaves others out. */
export const WEIGHTS = Object.fromEntries(Object.entries(ACTORS).map(([kind, { weight }]) => [kind, weight])) as Record<
  StepKind,
  number
>;

/** Without these nothing would ever happen. */
export const ALWAYS: ReadonlySet<StepKind> = new Set<StepKind>([
  'rest',
  'create-never',
  'create-job',
  'delete-pod',
  'start',
]);
