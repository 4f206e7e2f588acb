/**
 * A pod that asks for a service account mode that it cannot have, in words; the member it goes to, the mode that it asks
 * for itself (undefined: its namespace does), and what it is told.
 */
export type WrongMode = readonly [
  what: string,
  member: 'open' | 'closed',
  mode: string | undefined,
  reason: string,
  words: string,
];

/** The namespace asks for mode Host, which member `closed` does not admit. */
export const MODES_NAMESPACE = 'ident';

export const WRONG_MODES: readonly WrongMode[] = [
  ['a mode that is none', 'open', 'Hots', 'ServiceAccountModeInvalid', 'is "Hots", which is no service account mode'],
  ['a mode that the member does not admit', 'closed', 'Host', 'ServiceAccountModeNotAllowed', 'cluster "closed"'],
  [
    'the same by the namespace',
    'closed',
    undefined,
    'ServiceAccountModeNotAllowed',
    `of namespace "${MODES_NAMESPACE}"`,
  ],
];
