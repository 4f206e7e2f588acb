import { expect, test } from 'vitest';
import type { Cli } from '../../src/cli/cli.ts';
import { untilMemberReady } from '../../src/cli/member-ready.ts';
import type { Viewer } from '../../src/cli/viewer.ts';

const SECRET = { namespace: 'spillway-system', name: 'member-east' };

/** Why join gives up when the Secret is of version 8 and the status speaks of 7. */
async function whyNotReady(ready: { status: string; reason: string; message: string }): Promise<unknown> {
  const metadata = { name: 'east', generation: 1 };
  const status = { observedGeneration: 1, credentialsVersion: '7', conditions: [{ type: 'Ready', ...ready }] };
  const host = {
    get: () => Promise.resolve({ metadata, status }),
    tryGet: () => Promise.resolve({ metadata: { resourceVersion: '8' } }),
  } as unknown as Viewer;
  const terminal = { note: () => undefined, signal: new AbortController().signal };
  const cli = { terminal } as unknown as Cli;
  return await untilMemberReady(cli, host, { name: 'east', secret: SECRET }, 0).catch((error: unknown) => error);
}

test('what is wrong with new credentials is said, as a Secret that cannot be used is never the one of the status', async () => {
  const words = 'the manager to reach east by what Secret spillway-system/member-east says now';
  expect(await whyNotReady({ status: 'True', reason: 'Ready', message: '' })).toMatchObject({ reason: words });
  expect(await whyNotReady({ status: 'False', reason: 'InvalidToken', message: 'not one' })).toMatchObject({
    reason: `${words} (it is not Ready: InvalidToken: not one)`,
  });
});
