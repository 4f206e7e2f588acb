/** Faults by number, in the words of the table; a scenario in test/faults shows each of them. */
export const FAULTS = {
  F02: 'crash at every API call of the birth of a pod',
  F03: 'crash at every API call of the death of a pod',
  F08: 'two programs, one virtual node; the one in charge hangs',
  F21: 'the etcd of the host is restored to an older state',
  F24: 'the member is cut off for a minute',
  F32: 'the namespace is deleted in the member',
  F33: 'pods are deleted by hand in the member',
  F38: "a stranger's pod has the name",
  I2: 'host pods vanish in numbers: the deletion breaker',
} as const;

export type FaultId = keyof typeof FAULTS;
