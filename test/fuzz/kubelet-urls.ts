import fc from 'fast-check';
import { text } from './inputs.ts';

export const method = fc.constantFrom('GET', 'POST', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'get');

export const segment = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.constantFrom(
      'pods',
      'runningpods',
      'metrics',
      'resource',
      'cadvisor',
      'stats',
      'summary',
      'healthz',
      'containerLogs',
      'exec',
      'attach',
      'portForward',
      'run',
      'ns',
      'other',
      'web-0',
      'secret-0',
      'c',
      'uid-of-web-0',
      'uid-of-secret-0',
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '..',
      '.',
      '',
      '%2e%2e',
      '%2f',
      '..%2fother',
      '%252e',
      '%00',
      '%',
      '\\',
      ';a=b',
      'é',
      '~',
      'a:b',
    ),
  },
  { weight: 1, arbitrary: text },
);

export const parameter = fc
  .tuple(
    fc.constantFrom(
      'command',
      'input',
      'output',
      'error',
      'tty',
      'port',
      'follow',
      'tail',
      'tailLines',
      'sinceTime',
      'sinceSeconds',
      'limitBytes',
      'stream',
      'container',
      '__proto__',
      'only_cpu_and_memory',
    ),
    fc.constantFrom('=', '', '=='),
    fc.oneof(
      fc.constantFrom(
        '1',
        'true',
        '0',
        '80',
        '80,81',
        '-1',
        '99999999999999999999',
        'all',
        '%2c',
        '%26container%3Dx',
        '2026-01-01T00:00:00Z',
        '#',
        '&',
        'a+b',
        'sh',
      ),
      text,
    ),
  )
  .map((parts) => parts.join(''));

/** Paths and queries of a kubelet's API, near ones and far ones. */
export const url = fc
  .tuple(
    fc.constantFrom('/', '/', '/', '/', '//', '', '/./'),
    fc.oneof(
      fc
        .tuple(
          fc.constantFrom('containerLogs', 'exec', 'attach', 'portForward'),
          fc.constantFrom('ns', 'other'),
          segment,
          segment,
        )
        .map((path) => path.join('/')),
      fc.array(segment, { maxLength: 6 }).map((path) => path.join('/')),
    ),
    fc.array(parameter, { maxLength: 4 }).map((query) => (query.length === 0 ? '' : `?${query.join('&')}`)),
  )
  .map((parts) => parts.join(''));
