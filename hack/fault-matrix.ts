/** One fault: in the words of the table, and who shows what becomes of it. */
export interface Fault {
  what: string;
  /**
   * What other tests show about it: in a few words, and where, as `file: title`, also of those that come before and that
   * these need: nothing else is run of the file. Not given: a scenario in test/faults.
   */
  elsewhere?: { result: string; tests: readonly string[] };
  /** Why nothing shows it on one machine, or yet. */
  not?: string;
}

const CLUSTER = 'test/cluster';

/** Tests that show of more than one fault what becomes of it. */
const REPLACED_ELSEWHERE = `${CLUSTER}/descheduler.test.ts: pods of a Deployment are replaced elsewhere at the set pace, those that must not run twice are held; healed, one copy is left of each, and what is divided goes back to its shares`;
const ANSWERS_AGAIN = `${CLUSTER}/descheduler.test.ts: that answers again in the middle keeps the pods that are left`;
const OUT_OF_SERVICE = `${CLUSTER}/out-of-service.test.ts: gives all pods up that somebody makes anew, one after the other; what comes back is ended first, over a kill of the manager`;
const ON_HEAL =
  'test/long/on-heal.test.ts: of what must not run twice never two live, and nothing is run again; of each other pod one stays when the member is back, as onHeal says';
/** The same with StatefulSets on real kubelets, whose successors go elsewhere, or wait for the member that is to come back. */
const FENCED_SETS =
  'test/long/on-heal.test.ts: StatefulSets that an administrator calls out of service, whose word $word: the old copy ends first, and none lives beside its successor in the member that is back';

/** Faults by number. A scenario in test/faults shows each one that says nothing else. */
export const FAULTS = {
  F01: { what: 'kill -9 of the program, 1,000 running pods' },
  F02: { what: 'crash at every API call of the birth of a pod' },
  F03: { what: 'crash at every API call of the death of a pod' },
  F04: { what: 'the program stands still for two minutes (SIGSTOP)' },
  F05: { what: 'upgrade from older code, back, and again, 1,000 running pods' },
  F06: { what: 'a heap of 64 MiB, 1,000 running pods' },
  F07: { what: 'the event loop is blocked for 20 s' },
  F08: { what: 'two programs, one virtual node; the one in charge hangs' },
  F09: {
    what: 'two hosts, one namespace of a member',
    elsewhere: {
      result: 'refused; neither touches what is of the other',
      tests: [
        `${CLUSTER}/bad-input.test.ts: a namespace of the member that belongs to another host`,
        `${CLUSTER}/pods-wrong-results.test.ts: 6: two virtual nodes of one member and two hosts on it leave each other alone`,
      ],
    },
  },
  F10: { what: 'the disk for logs is full' },
  F11: { what: '200 Jobs end while the host API and the program are down' },
  F12: { what: 'watches answer 410' },
  F13: { what: 'lists answer 200 with {}, HTML, half of the bytes, or no items' },
  F14: { what: 'a stale API server serves the past; one claims a version of the far future' },
  F15: { what: 'the host answers 429 with Retry-After to everything but Leases, now and then' },
  F16: { what: 'half of all requests fail for 5 minutes, both sides' },
  F17: {
    what: 'one member answers after 30 s',
    elsewhere: {
      result: 'the others are as prompt as before',
      tests: [
        `${CLUSTER}/pods-wrong-results.test.ts: a member that answers after 30 s keeps nobody else waiting, not even at a start`,
      ],
    },
  },
  F18: { what: 'somebody else writes to pod and Node all the time' },
  F19: { what: 'watches fall silent without an end' },
  F20: {
    what: 'tokens and certificates are rotated',
    elsewhere: {
      result: 'taken into running connections',
      tests: [
        'test/kube/credentials.test.ts: follows rotated certificates and tokens, and waits for the second half of a pair',
        `${CLUSTER}/member-cluster.test.ts: takes rotated credentials into the running connection`,
      ],
    },
  },
  F21: { what: 'the etcd of the host is restored to an older state' },
  F22: {
    what: 'the Node is deleted',
    elsewhere: {
      result: 'back within 10 s with the same labels, pods untouched',
      tests: [
        `${CLUSTER}/co-tenants.test.ts: a deleted Node is back in a moment, with what others had put on it, and its pods have not noticed`,
      ],
    },
  },
  F23: { what: 'Events and the status of pods are forbidden in the host' },
  F24: { what: 'the member is cut off for a minute' },
  F25: {
    what: 'the member is cut off for 30 minutes (to scale)',
    elsewhere: {
      result:
        'pods of Deployments are replaced elsewhere, one after the other, others held until an administrator says that nothing runs there; once it is back our taints go within 5 s, and one copy of each is left, which one as onHeal says',
      tests: [
        ON_HEAL,
        'test/long/large-member-lost.test.ts: while nothing fits elsewhere none is evicted',
        'test/long/large-member-lost.test.ts: as soon as there is room they follow the set rate within a tenth',
        'test/long/large-member-lost.test.ts: and no disruption budget is violated',
        REPLACED_ELSEWHERE,
        ANSWERS_AGAIN,
        'test/long/line-whole-again.test.ts: a member takes pods again within 5 s, %s',
        OUT_OF_SERVICE,
        `${CLUSTER}/out-of-service.test.ts: with effect NoExecute: Kubernetes deletes all at once, and each is gone, though the manager was started in the outage`,
      ],
    },
  },
  F26: { what: 'requests pass, but watches are dead' },
  F27: {
    what: 'a quota of the member refuses the pod',
    elsewhere: {
      result: 'Pending with the words of the member, rarer and rarer tries',
      tests: [
        `${CLUSTER}/pods-refusals.test.ts: $name: refused by the API server`,
        `${CLUSTER}/pods-refusals.test.ts: nothing loops: tries get rarer, and the host is told once`,
      ],
    },
  },
  F28: {
    what: 'Pod Security or a webhook of the member refuses the pod',
    elsewhere: {
      result: 'Pending with the words of the member',
      tests: [`${CLUSTER}/pods-refusals.test.ts: each says within seconds what is wrong, in the words of the member`],
    },
  },
  F29: {
    what: 'the member changes the pod at admission',
    elsewhere: {
      result: 'accepted, not fought',
      tests: [`${CLUSTER}/pods-wrong-results.test.ts: a container that the member's admission adds`],
    },
  },
  F30: { what: 'the pod is created in the member, but the answer never comes, or is an error' },
  F31: { what: 'the member is wiped, same address and certificates' },
  F32: { what: 'the namespace is deleted in the member' },
  F33: { what: 'pods are deleted by hand in the member' },
  F34: { what: 'a node of the member is gone' },
  F35: { what: 'members three minor versions older than the host, or one newer' },
  F36: {
    what: 'the serving certificate of the member is not of its CA',
    elsewhere: {
      result: 'Ready=False, never falls back to insecure',
      tests: [`${CLUSTER}/member-cluster.test.ts: never trusts another CA`],
    },
  },
  F37: {
    what: 'the member does not accept the credentials any more',
    elsewhere: {
      result: 'as when it cannot be reached; the reason is told',
      tests: [
        `${CLUSTER}/member-cluster.test.ts: says when the member does not accept the credentials`,
        `${CLUSTER}/member-cluster.test.ts: says when the credentials lack rights`,
      ],
    },
  },
  F38: { what: "a stranger's pod has the name" },
  F39: {
    what: 'the member dies in the middle of an exec',
    elsewhere: {
      result: 'the stream ends with an error',
      tests: [
        `${CLUSTER}/streams.test.ts: the member dies: streams end, new ones are refused in words that name the cluster`,
      ],
    },
  },
  F40: {
    what: 'the member dies in the middle of `logs -f`',
    elsewhere: {
      result: 'the answer breaks',
      tests: ['test/kubelet/server.test.ts: a member’s stream that breaks breaks the answer'],
    },
  },
  F41: {
    what: 'somebody reads slowly',
    elsewhere: {
      result: 'the member is slowed down, memory stays flat',
      tests: [
        'test/kubelet/server.test.ts: a slow reader stops the member’s stream',
        `${CLUSTER}/streams.test.ts: 100 MiB each way arrive whole and memory stays flat`,
      ],
    },
  },
  F42: {
    what: 'exit codes, end of input, sizes of terminals, SPDY and WebSocket',
    elsewhere: { result: 'as on the member itself', tests: [`${CLUSTER}/streams.test.ts: exit code %d`] },
  },
  F43: {
    what: 'certificates are renewed under open streams',
    elsewhere: {
      result: 'streams go on',
      tests: [
        'test/kubelet/server.test.ts: a new serving certificate is shown to the next connection; an open stream goes on',
        'test/long/certificates.test.ts: are renewed over and over; streams outlive those that they began with, and work goes on',
        'test/long/certificates.test.ts: are never used after their end, and their renewal disturbs nobody',
      ],
    },
  },
  F44: {
    what: 'the clock jumps',
    elsewhere: {
      result: 'leases are neither kept too long nor stolen; nothing is done too early, forgotten or put off',
      tests: [
        'test/kube/lease-election.test.ts: counts a wall clock that jumped ahead (a machine that slept) against itself',
        'test/kube/lease-election.test.ts: takes over from a silent holder only after watching it for the whole duration, whatever its clock says',
        'test/pods/clock-jumps.test.ts: neither shortens nor lengthens the doubt about a host pod that is missing',
        'test/pods/clock-jumps.test.ts: hides no deletion that fell out of the queue',
        'test/pods/clock-jumps.test.ts: puts off no status that waits for a moment',
      ],
    },
  },
  F45: {
    what: 'the request for a certificate is denied or never signed',
    elsewhere: {
      result: 'asked again; told with what to do',
      tests: [
        'test/serving/certificates.test.ts: a denied or deleted request, and a host that cannot be reached, are tried again',
        'test/nodes/node-identity.test.ts: not at all where neither is possible, and says why and what to do',
      ],
    },
  },
  F46: { what: 'objects as large as they may be' },
  F47: {
    what: 'names as long as they may be',
    elsewhere: {
      result: 'they run and are gone again; namespaces are hashed, without collisions',
      tests: [
        'test/api/namespace-mapping.test.ts: puts the prefix before the name and hashes from 63 characters on',
        `${CLUSTER}/bad-input.test.ts: names as long as names may be, and full of dots: run, are read, told about and gone`,
        `${CLUSTER}/member-events.test.ts: about pods with names as long as a kubelet bears, in a namespace whose mapped name is cut`,
      ],
    },
  },
  F48: {
    what: 'hostile input: paths, control characters, keys like __proto__',
    elsewhere: {
      result: 'refused, or kept as data',
      tests: [
        'test/kubelet/routes.test.ts: gives a route or a reason, and every name in a route is a plain DNS name',
        'test/kubelet/server.test.ts: malformed HTTP, endless headers and half a request do no harm',
        'test/pods/translate-properties.test.ts: keys that name what every object inherits are ordinary keys',
      ],
    },
  },
  F49: {
    what: 'numbers beyond 2^53, quantities, unknown fields',
    elsewhere: {
      result: 'the same bytes',
      tests: [
        'test/kube/json.test.ts: gives back what it read, byte for byte',
        `${CLUSTER}/pods-wrong-results.test.ts: arrive in the member as they are`,
      ],
    },
  },
  F50: { what: '10,000 pods are made and deleted as fast as the API server takes it' },
  F51: {
    what: '50 pods that fit the sum of nodes but none of them',
    elsewhere: {
      result: 'not bound; small ones are, at once',
      tests: [
        `${CLUSTER}/scheduler-extender.test.ts: stay unbound, hold nothing, and are told why; small ones do not wait behind them`,
      ],
    },
  },
  F52: { what: 'nodes of the member are cordoned under running pods' },
  F53: {
    what: 'the scheduler extender does not answer',
    elsewhere: {
      result: 'pods that need it wait',
      tests: [
        `${CLUSTER}/scheduler-extender.test.ts: binds the pods that carry its name; while Spillway does not answer they wait`,
      ],
    },
  },
  F54: { what: 'descheduler and autoscaler work against each other' },
  F55: {
    what: 'all members are cut off',
    elsewhere: {
      result: 'nothing is evicted, and it is said how to go on',
      tests: [
        `${CLUSTER}/descheduler.test.ts: like all others is taken for a fault on this side: nothing is moved, and it says how to go on`,
      ],
    },
  },
  F56: { what: 'most members are cut off at once' },
  F57: {
    what: 'our webhook is down',
    elsewhere: {
      result: 'pods are created as they are',
      tests: [`${CLUSTER}/admission.test.ts: while it is down, pods are created as they are, and soon`],
    },
  },
  F58: { what: 'a Secret is rotated while pods start' },
  F59: { what: 'a pod of a StatefulSet is deleted by force while the member is cut off' },
  F60: {
    what: 'a member leaves while it is gone',
    elsewhere: {
      result:
        'waited for, until an administrator says that it is gone for good; then it goes, and what may remain is named',
      tests: [
        `${CLUSTER}/leaving.test.ts: is waited for, until an administrator says so by the UID of the MemberCluster`,
        `${CLUSTER}/leaving.test.ts: is given up by the word of an administrator, with a list of what may remain there`,
        `${CLUSTER}/leaving.test.ts: leaves nothing once it is back and an administrator takes away what remained`,
      ],
    },
  },
  F61: {
    what: 'the member has no nodes at first',
    elsewhere: {
      result: 'room is kept for pods that wait for a node, for its lead time',
      tests: ['test/capacity/room-of-member.test.ts: are kept for pods that wait for them, for the lead time'],
    },
  },
  F62: { what: 'one object that handlers choke on' },
  F63: {
    what: 'watch events come twice, late, or in another order',
    elsewhere: {
      result: 'the cache equals the API, nothing is invented',
      tests: ['test/long/kube-informer.test.ts: %s: the cache equals the API, no delete is missed or invented'],
    },
  },
  F64: { what: 'the name of the member leads nowhere, to a stranger, then elsewhere' },
  F65: {
    what: 'two members hold a copy after a heal',
    elsewhere: {
      result: 'that of the pod which was replaced ends, or the one that the policy picks, and an Event names both',
      tests: [REPLACED_ELSEWHERE, ON_HEAL, OUT_OF_SERVICE, FENCED_SETS],
    },
  },
  F66: {
    what: 'no manager runs for fifteen minutes (to scale), pods on virtual nodes',
    elsewhere: {
      result: 'none is deleted, nothing is written to the member; as Kubernetes has it, all of them are',
      tests: [
        'test/long/manager-outage.test.ts: pods that were given what they need outlive it, and nothing is written about their copies afterwards',
        'test/long/manager-outage.test.ts: as Kubernetes has it, all pods of a virtual node are deleted at once when nobody serves it, whatever budgets say',
      ],
    },
  },
  // A read leaves nothing behind.
  F67: { what: 'crash of the mover at every write of a graceful move' },
  F68: {
    what: 'a line is cut in the middle of a graceful move: to the host, to the member that is left, to the other one',
  },
  F69: {
    what: 'a lost member comes back while its pods are being replaced',
    elsewhere: {
      result: 'at most the move of that moment follows; the pods that are left stay as they are',
      tests: [
        ANSWERS_AGAIN,
        'test/long/large-member-lost.test.ts: they stop within 5 s of its recovery',
        'test/long/large-member-lost.test.ts: each pod that was evicted has one in its place, the others are what they were, and all are Ready',
        ON_HEAL,
      ],
    },
  },
  F70: {
    what: 'a Deployment under load is moved to another member by hand',
    elsewhere: {
      result: 'no request fails, all pods Ready all the time',
      tests: [
        'test/long/moved-under-load.test.ts: no request fails, and all pods are Ready all the time, while kubectl spillway move takes them elsewhere',
      ],
    },
  },
  I2: { what: 'host pods vanish in numbers: the deletion breaker' },
  I3: { what: 'another cluster answers at the address of the host, with the same keys, members and names of pods' },
} as const satisfies Record<string, Fault>;

export type FaultId = keyof typeof FAULTS;
