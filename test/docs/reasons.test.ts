import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const PAGE = readFileSync('docs/reference/events.md', 'utf8');
/** Rooms whose reasons users meet. API refusals of the kubelet port speak HTTP instead. */
const ROOMS = ['src/pods', 'src/dependents', 'src/members', 'src/nodes', 'src/kube', 'src/scheduler/gangs', 'src/budgets', 'src/services', 'src/multi-cluster'];
/** How a reason is written in code: a field, or the first text of a helper that makes a hold, refusal or condition. */
const REASON =
  /(?:reason: |refuse\(\s*|say\(\s*|#hold\(\s*|#tell\(key, (?:step\.)?pods, |(?:no|yes|unknown)\(\s*type,\s*|'Warning', |unready\(\s*|new CredentialsError\(\s*)'([A-Z][A-Za-z]+)'/g;
/** Reasons of the Kubernetes API that are parsed or passed on, and those of the operator's own kubeconfig. */
const NOT_OURS = new Set(['FieldValueRequired', 'FieldValueForbidden', 'CredentialPluginFailed', 'FileUnreadable', 'NoCredentials']);

it('lists every reason that users can meet', () => {
  const missing = new Set<string>();
  for (const room of ROOMS) {
    for (const file of readdirSync(room, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))) {
      for (const [, reason = ''] of readFileSync(join(room, file), 'utf8').matchAll(REASON)) {
        if (!NOT_OURS.has(reason) && !PAGE.includes(reason)) missing.add(`${reason} (${room}/${file})`);
      }
    }
  }
  expect([...missing]).toEqual([]);
});
