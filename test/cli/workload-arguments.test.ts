import { expect, it } from 'vitest';
import { CliError } from '../../src/cli/cli-error.ts';
import { EXIT } from '../../src/cli/exit-code.ts';
import { workloadNamed } from '../../src/cli/workload-arguments.ts';

it.each([
  ['deployment/web', 'Deployment', 'web'],
  ['deploy/web', 'Deployment', 'web'],
  ['Deployments.apps/web', 'Deployment', 'web'],
  ['statefulset.v1.apps/db', 'StatefulSet', 'db'],
  ['rs/a', 'ReplicaSet', 'a'],
  ['job/b', 'Job', 'b'],
  ['rc/c', 'ReplicationController', 'c'],
])('%s is a workload, as kubectl has it', (text, kind, name) => {
  const found = workloadNamed(text);
  expect([found.resource.kind, found.name]).toEqual([kind, name]);
});

it.each([
  'web',
  'deployment/',
  '/web',
  'deployment/a/b',
  'daemonset/a',
  'cronjob/a',
  'deployment.batch/a',
  'pod/a',
  '',
])('"%s" is none, and what is one is told', (text) => {
  const run = (): unknown => workloadNamed(text);
  expect(run).toThrow(CliError);
  try {
    run();
  } catch (error) {
    expect((error as CliError).exitCode).toBe(EXIT.usage);
    expect((error as CliError).fix).toMatch(/deployment\/web; kinds are replicaset, deployment, /);
  }
});
