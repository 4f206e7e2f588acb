#!/usr/bin/env node
/** `kubectl_complete-spillway`, which kubectl runs with the words behind `kubectl spillway` when somebody presses Tab. */
import process from 'node:process';
import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import type { KubeObject } from '../kube/object.ts';
import { NAMESPACES, PODS, type Resource } from '../kube/resource.ts';
import { list } from '../kube/verbs.ts';
import { Cli } from './cli.ts';
import { completion, type Completer } from './completion.ts';
import { buildProgram } from './program.ts';
import { processTerminal } from './terminal.ts';
import { viewerContexts } from './viewer-access.ts';
import { Viewer } from './viewer.ts';

/** Nobody waits longer for a suggestion, in ms. */
const DEADLINE_MS = 2000;

const silent = { ...processTerminal(AbortSignal.timeout(DEADLINE_MS)), note: () => undefined };

const completer: Completer = {
  contexts: ({ kubeconfig }) => viewerContexts({ kubeconfig }, process.env),
  clusters: async (given) => await namesOf(MEMBER_CLUSTERS, given),
  namespaces: async (given) => await namesOf(NAMESPACES, given),
  pods: async (given) => await namesOf(PODS, given),
};

/** A cluster that does not answer in time has no suggestions. */
async function namesOf(resource: Resource, given: Parameters<Completer['pods']>[0]): Promise<string[]> {
  try {
    const viewer = await Viewer.connect(given, silent);
    const namespace = resource.namespaced ? (given.namespace ?? viewer.namespace) : undefined;
    const options = { namespace, signal: silent.signal, resourceVersion: '0' };
    const { items } = await list<KubeObject>(viewer.client, resource, options);
    return items.map(({ metadata }) => metadata.name);
  } catch {
    return [];
  }
}

const words = process.argv.slice(2);
const program = buildProgram(new Cli(silent));
// Without a top-level await, which the program as a single file cannot have.
void completion(program, words, completer).then((lines) => process.stdout.write(lines, () => process.exit(0)));
