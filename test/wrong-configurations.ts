/** What a configuration file must not say, and what is said about it, in one line. */
export const WRONG_CONFIGURATIONS: readonly (readonly [what: string, text: string, words: string])[] = [
  [
    'a level that there is not',
    'logLevel: loud\n',
    'Invalid option: expected one of "trace"|"debug"|"info"|"warn"|"error" → at logLevel',
  ],
  ['a key that there is not', 'loglevel: debug\n', 'Unrecognized key: "loglevel"'],
  [
    'moves that never come to one',
    'descheduler: { movesPerSecond: 0 }\n',
    'Too small: expected number to be >=0.01 → at descheduler.movesPerSecond',
  ],
  [
    'less than no moves out of a member',
    'descheduler: { movesPerSecondPerMember: -1 }\n',
    'Too small: expected number to be >=0.01 → at descheduler.movesPerSecondPerMember',
  ],
  [
    'no limit of moves within an hour',
    'descheduler: { movesPerPodPerHour: none }\n',
    'Invalid input: expected number, received string → at descheduler.movesPerPodPerHour',
  ],
  [
    'a dry run that is a word',
    'descheduler: { dryRun: "yes" }\n',
    'Invalid input: expected boolean, received string → at descheduler.dryRun',
  ],
  [
    'a limit of moves that there is not',
    'descheduler: { movesPerMinute: 5 }\n',
    'Unrecognized key: "movesPerMinute" → at descheduler',
  ],
  ['a list', '- a\n', 'the configuration must be a mapping'],
  ['no YAML', 'a: [\n', 'it is no YAML'],
];
