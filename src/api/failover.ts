import { z } from 'zod';
import { duration } from './cluster-tiers.ts';
import { statePreservation } from './state-preservation.ts';

const onMemberLost = z
  .object({
    after: duration()
      .exactOptional()
      .describe(
        'How long the member does not answer before its pods are replaced elsewhere. A pod that tolerates spillway.dev/member-unreachable ' +
          '(NoExecute) with longer tolerationSeconds stays for these. Default: 5m.',
      ),
    action: z
      .enum(['Replace', 'Hold', 'ReplaceWhenFenced'])
      .exactOptional()
      .describe(
        'Replace: the pod is evicted, so that its controller makes another one, which goes where there is room; the one in the lost member ' +
          'ends once that answers again. Hold: it stays what it is. ReplaceWhenFenced: it is replaced once an administrator says that nothing runs there any ' +
          'more, by the taint node.kubernetes.io/out-of-service on the virtual node. Default: Replace for pods of ReplicaSets and ReplicationControllers, ' +
          'ReplaceWhenFenced for all others. Pods of StatefulSets, with claims and of gangs are never replaced before that; for those without a controller nobody would ever make another one.',
      ),
    onHeal: z
      .enum(['KeepReplacement', 'KeepOriginal', 'LongestRunning'])
      .exactOptional()
      .describe(
        'Which of the two stays when the member answers again, of a pod that was replaced meanwhile. KeepReplacement: the new one; the original was evicted when it ' +
          'was replaced, and ends. KeepOriginal: the original, if it is Ready again within cluster.gracePeriodSeconds. LongestRunning: the one that has been Ready for longer. For the ' +
          'last two the original is not evicted before, but released from its ReplicaSet, beside which it waits for as long as the member does not answer. They are for pods of Deployments ' +
          'whose strategy is not Recreate, with purgeMode Gracefully; for others, and those that did not run, KeepReplacement holds. Pods that must not run twice are held, so none of theirs is ' +
          'ever replaced. Default: KeepReplacement.',
      ),
  })
  .describe('When the member does not answer any more. What runs there may go on running.');

const onUnschedulable = z
  .object({
    after: duration().describe(
      'How long a pod may be left Pending in a member, which took it and finds no node for it, before it is evicted, so that its controller makes ' +
        'another one, which goes elsewhere. A member with elastic nodes gets at least their lead time. Only pods that never started, of a ReplicaSet, ' +
        'StatefulSet or ReplicationController, and only while another cluster takes them. The member is avoided meanwhile, as avoidFor says.',
    ),
  })
  .describe('When a member has no node for a pod that it took. Default: the pod waits there.');

/** As in Karmada. */
const TOLERATION_SECONDS = 300;

const application = z
  .object({
    decisionConditions: z
      .object({
        tolerationSeconds: z
          .int()
          .min(0)
          .max(86_400)
          .default(TOLERATION_SECONDS)
          .meta({
            description:
              'How long a pod may be ill before it is moved; 15 s at least. It is ill from when its containers are not ready until it has been ' +
              'Ready for a minute without a break, so one that crashes over and over is ill all the time. Longer than the slowest start.',
            unit: 'seconds',
          }),
      })
      .prefault({})
      .describe('When a pod is given up where it is.'),
    statePreservation: statePreservation('as it did not get well').exactOptional(),
  })
  .describe(
    'When pods do not get well in a member, while others of their revision are well in another cluster. Only pods of a ReplicaSet of a ' +
      'Deployment or of a StatefulSet, without claims, and only while another cluster takes them. Default: they stay.',
  );

const after = (what: string) => z.object({ after: duration().describe(what) });

const repatriate = after(
  'How long a cluster of an earlier tier must have had room, at every look, before a pod goes back there. One pod at a time, only while all are Ready.',
).describe(
  'Pods in later tiers go home when there is room again. Without division. Default: they stay where they run.',
);

const divisionDrift = after(
  'How long a cluster must have had too many pods, at every look, before one goes to where the division wants it. One pod at a time, only while all are Ready.',
).describe(
  'Pods follow their division when weights, limits, members or labels have changed. Default: only pods that come do.',
);

const spreadViolation = after(
  'How long pods must have been spread otherwise than spreadConstraints ask, and another place have mended that, at every look, before one goes there. One pod at a time, only while all are Ready.',
).describe(
  'Pods follow spreadConstraints, soft ones among them, when members came back or labels have changed. Default: only pods that come do.',
);

/** As in Karmada. */
const GRACE_SECONDS = 600;

const cluster = z
  .object({
    purgeMode: z
      .enum(['Gracefully', 'Directly', 'Never'])
      .default('Gracefully')
      .describe(
        'Gracefully: of a Deployment whose strategy is not Recreate another pod is made first, and the one that is to go ends once as many are Ready as ' +
          'before without it. Pods that are not Ready, or of other controllers, are evicted at once, as with Directly. Never: pods stay where they are.',
      ),
    gracePeriodSeconds: z
      .int()
      .min(1)
      .max(86_400)
      .default(GRACE_SECONDS)
      .describe('How long the other pod may take to be Ready, with purgeMode Gracefully, in seconds.'),
    onTimeout: z
      .enum(['GiveBack', 'Evict'])
      .default('GiveBack')
      .describe(
        'When it took longer. GiveBack: the pod stays, the one that did not become Ready goes, and the move is tried again five minutes later. ' +
          'Evict: the pod goes all the same.',
      ),
    statePreservation: statePreservation('for any other reason').exactOptional(),
  })
  .describe('How pods leave a member that answers, or that does not (purgeMode Never).');

/** Named as in Karmada where it has the concept. */
export const failover = z
  .object({
    onMemberLost: onMemberLost.exactOptional(),
    onUnschedulable: onUnschedulable.exactOptional(),
    application: application.exactOptional(),
    repatriate: repatriate.exactOptional(),
    divisionDrift: divisionDrift.exactOptional(),
    spreadViolation: spreadViolation.exactOptional(),
    activation: z
      .enum(['Lazy', 'Eager'])
      .exactOptional()
      .describe(
        'Pods in clusters that the policy does not choose any more, after it or labels of clusters were edited. Lazy: they stay. Eager: they are moved, one at a time, only while all are Ready. Default: Lazy.',
      ),
    cluster: cluster.exactOptional(),
    dryRun: z
      .boolean()
      .exactOptional()
      .describe(
        'true: nothing is moved, and Event MoveWanted tells what would be. All is judged as in earnest; what has begun is finished. Gangs that give up, and what ' +
          'WorkloadMigrations and WorkloadRebalancers order, are not held back. Default: false.',
      ),
  })
  .describe(
    'When pods that run are replaced by others elsewhere. Needs the component scheduler and manifests/scheduler/descheduler.yaml.',
  );

export type Failover = z.output<typeof failover>;

/** What holds where a policy says nothing of `failover.cluster`. */
export const CLUSTER_DEFAULTS: NonNullable<Failover['cluster']> = cluster.parse({});
