import { expect, test } from 'vitest';
import { type Seen, unnamedWrites } from '../faults/kinds-of-writes.ts';

function request(method: string, path: string): Seen[string][number] {
  return { method, path, query: new URLSearchParams(), watch: false };
}

const NAMED = ['PATCH workloadmigrations/status (host)', 'DELETE pods (west)'];

test.each<[string, string, string, string, string[]]>([
  ['of every move', 'host', 'PATCH', '/api/v1/namespaces/a/pods/web', []],
  ['that a move names', 'host', 'PATCH', '/apis/spillway.dev/v1alpha1/namespaces/a/workloadmigrations/all/status', []],
  ['a read', 'host', 'GET', '/api/v1/namespaces/a/services/web', []],
  ['of another move', 'host', 'PATCH', '/api/v1/namespaces/b/services/web', []],
  ['that only tells', 'host', 'POST', '/api/v1/namespaces/a/events', []],
  ['that comes before the first copy', 'west', 'POST', '/api/v1/namespaces', []],
  ['that is new', 'host', 'PATCH', '/api/v1/namespaces/a/services/web', ['PATCH services (host)']],
  ['known, elsewhere', 'west', 'PATCH', '/api/v1/namespaces/a/pods/web', ['PATCH pods (west)']],
  [
    'that is new, of an order of all namespaces',
    'host',
    'PATCH',
    '/apis/spillway.dev/v1alpha1/workloadrebalancers/a',
    ['PATCH workloadrebalancers (host)'],
  ],
])('a write %s', (_, side, method, path, unnamed) => {
  expect(unnamedWrites({ [side]: [request(method, path)] }, 'a', NAMED)).toEqual(unnamed);
});
