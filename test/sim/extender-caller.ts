import { IncomingMessage, ServerResponse, type RequestListener } from 'node:http';
import { Socket } from 'node:net';
import type { Network } from './network.ts';
import type { EventLoop } from './event-loop.ts';
import type { Random } from './random.ts';
import type { SimProcess } from './sim-process.ts';
import type { SimServer } from './sim-server.ts';
import { FILES } from './simulation.ts';

/** Where manifests/scheduler say that schedulers reach it, and how long they wait. */
const PORT = 10_270;
const TIMEOUT_MS = 1_000;

interface Spoken {
  readonly status: number;
  readonly body: string;
}

export type ExtenderVerb = 'filter' | 'confirm' | 'prioritize' | 'preempt';

export interface ExtenderAnswer extends Spoken {
  readonly by: SimProcess;
}

/** Asks the program what kube-scheduler asks it: one of the replicas that listen, as a Service chooses it. */
export class ExtenderCaller {
  readonly #loop: EventLoop;
  readonly #network: Network;
  readonly #random: Random;

  constructor(loop: EventLoop, network: Network, random: Random) {
    this.#loop = loop;
    this.#network = network;
    this.#random = random;
  }

  /** `done` gets undefined when no answer came in time. */
  ask(verb: ExtenderVerb, question: object, done: (answer: ExtenderAnswer | undefined) => void): void {
    const loop = this.#loop;
    const random = this.#random;
    const replicas = [...this.#network.processes].filter(({ alive, ports }) => alive && ports.has(PORT));
    const replica = random.pick(replicas);
    const server = replica?.ports.get(PORT) as SimServer | undefined;
    let isOver = false;
    const finish = (answer: ExtenderAnswer | undefined): void => {
      if (isOver) return;
      isOver = true;
      timeout.cancelled = true;
      done(answer);
    };
    let hangUp = (): void => undefined;
    const timeout = loop.later(TIMEOUT_MS, () => {
      hangUp();
      finish(undefined);
    });
    if (server === undefined || replica === undefined) {
      loop.later(random.between(0.2, 5), () => finish(undefined));
      return;
    }
    const text = JSON.stringify(question);
    const arrive = (): void => {
      hangUp = serve(server, verb, text, (answer) => {
        if (random.chance(0.98)) loop.later(random.between(0.2, 5), () => finish({ ...answer, by: replica }));
      });
      // Whoever stopped waiting closed the connection, with the question still on its way.
      if (isOver) hangUp();
    };
    loop.schedule(random.chance(0.98) ? random.between(0.2, 5) : TIMEOUT_MS * 2, arrive, replica);
  }
}

/** One request of a scheduler that shows its certificate. Returns what closes its connection before the answer. */
function serve(server: SimServer, verb: string, text: string, answered: (answer: Spoken) => void): () => void {
  const socket = Object.assign(new Socket(), {
    authorized: true,
    isSessionReused: () => false,
    getPeerCertificate: () => ({
      subject: { CN: 'system:kube-scheduler' },
      valid_from: 'Jan 1 00:00:00 2000 GMT',
      valid_to: 'Jan 1 00:00:00 2100 GMT',
      raw: FILES.get('/sim/tls.crt'),
    }),
  });
  server.emit('connection', socket);
  server.emit('secureConnection', socket);
  const request = new IncomingMessage(socket);
  request.method = 'POST';
  request.url = `/${verb}`;
  request.headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(text)),
  };
  const response = new ServerResponse(request);
  response.assignSocket(socket);
  const end = (body = ''): ServerResponse => {
    answered({ status: response.statusCode, body });
    return response;
  };
  Object.assign(response, { end });
  request.push(text);
  request.push(null);
  // Else it is taken for one that was cut off, and its connection goes.
  request.complete = true;
  (server.handler as RequestListener)(request, response);
  return () => {
    socket.destroy();
    response.emit('close');
  };
}
