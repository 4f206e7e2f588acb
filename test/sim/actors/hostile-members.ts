import type { JsonObject } from '../../../src/kube/json-equal.ts';
import type { Random } from '../random.ts';
import type { Acts } from './act.ts';
import { someCopy } from './targets.ts';

/** Not what an API server would ever store. Each with what makes it good again. */
const WRONG: readonly { wrong: JsonObject; right: JsonObject }[] = [
  { wrong: { status: { reason: 5 } }, right: { status: { reason: null } } },
  { wrong: { status: { message: { a: 1 } } }, right: { status: { message: null } } },
  { wrong: { status: { startTime: 7 } }, right: { status: { startTime: null } } },
  { wrong: { metadata: { labels: { wrong: 7 } } }, right: { metadata: { labels: { wrong: null } } } },
  { wrong: { metadata: { annotations: { wrong: [1] } } }, right: { metadata: { annotations: { wrong: null } } } },
];
/** As a terminal would obey it. */
const ESCAPES = '\u001b[31mall is lost\u001b[0m\u0007\u0000';

/** Answers to writes that no API server gives. */
const NONSENSE: readonly { code: number; body: string }[] = [
  ...[403, 409, 422, 500].map((code) => ({
    code,
    body: JSON.stringify({
      kind: 'Status',
      status: 'Failure',
      code: 'x',
      reason: 5,
      message: { a: [1] },
      details: 'none',
    }),
  })),
  ...[200, 201].map((code) => ({
    code,
    body: JSON.stringify({ kind: 'Pod', apiVersion: 'v1', metadata: { name: 5, uid: [], labels: 'a' }, status: 7 }),
  })),
  { code: 201, body: 'null' },
  { code: 200, body: '{"kind":' },
];

function someWrong(random: Random): { wrong: JsonObject; right: JsonObject } {
  return random.pick(WRONG) ?? { wrong: {}, right: {} };
}

/** Members whose API server, or whoever writes there, means harm. */
export const HOSTILE_MEMBERS = {
  'wrong-shape': {
    weight: 0.6,
    act: (scene, random) => {
      const found = someCopy(scene, random);
      const cluster = found && scene.world.members.get(found.member);
      if (found === undefined || cluster === undefined) return undefined;
      const { wrong, right } = someWrong(random);
      cluster.api.edit(found.path, wrong);
      const { uid } = found.object.metadata;
      const seconds = Math.round(random.between(1, 40));
      const mend = (): void => {
        if (cluster.get(found.path)?.metadata.uid === uid) cluster.api.edit(found.path, right);
      };
      scene.forAWhile(seconds, mend);
      // A cluster that is restored to what it was meanwhile has it again.
      scene.mends.push(mend);
      return `for ${seconds} s ${found.path} in ${found.member} has ${JSON.stringify(wrong)}`;
    },
  },
  escapes: {
    weight: 0.5,
    act: (scene, random) => {
      const found = someCopy(scene, random);
      if (found === undefined) return undefined;
      const status = { message: ESCAPES, reason: ESCAPES };
      scene.world.members.get(found.member)?.patch('owner', `${found.path}/status`, { status });
      return `owner gives ${found.path} in ${found.member} a message for terminals`;
    },
  },
  'slow-creations': {
    weight: 0.7,
    act: (scene, random) => {
      const member = random.pick([...scene.world.members.keys()]) ?? '';
      const door = scene.doors.get(member);
      if (door === undefined) return undefined;
      const seconds = Math.round(random.between(10, 60));
      door.creationMs = () => random.between(1_000, 58_000);
      scene.forAWhile(seconds, () => {
        door.creationMs = undefined;
      });
      return `for ${seconds} s a webhook of ${member} takes up to 58 s for a pod`;
    },
  },
  nonsense: {
    weight: 0.5,
    act: (scene, random) => {
      const member = random.pick([...scene.world.members.keys()]) ?? '';
      const door = scene.doors.get(member);
      if (door === undefined) return undefined;
      const seconds = Math.round(random.between(2, 30));
      door.nonsense = () => random.pick(NONSENSE) ?? { code: 500, body: '' };
      scene.forAWhile(seconds, () => {
        door.nonsense = undefined;
      });
      return `for ${seconds} s ${member} answers writes with nonsense`;
    },
  },
} satisfies Acts;
