import { ExtenderCaller, type ExtenderVerb } from '../extender-caller.ts';
import type { Random } from '../random.ts';
import type { SimProcess } from '../sim-process.ts';
import type { World } from '../world.ts';

interface Said {
  readonly said: unknown;
  readonly by: SimProcess;
}

/** Asks the extender as kube-scheduler does, to which an answer that refuses is none. */
export class SchedulerQuestions {
  readonly #extender: ExtenderCaller;
  readonly #tell: (what: string) => void;

  /** `tell`: of answers that no extender may give. */
  constructor({ loop, network }: World, random: Random, tell: (what: string) => void) {
    this.#extender = new ExtenderCaller(loop, network, random);
    this.#tell = tell;
  }

  async ask(verb: ExtenderVerb, question: object): Promise<Said | undefined> {
    return await new Promise((resolve) => {
      this.#extender.ask(verb, question, (answer) => {
        if (answer !== undefined && answer.status !== 200 && answer.status !== 503)
          this.#tell(`the answer to ${verb} is ${String(answer.status)}: ${answer.body}`);
        if (answer?.status !== 200) resolve(undefined);
        else {
          const said: unknown = JSON.parse(answer.body);
          // Why a question is not answered: in a field of most answers, and instead of one about victims.
          const { Error: refusal = '' } = Object(said) as { Error?: string };
          resolve(refusal === '' && typeof said === 'object' ? { said, by: answer.by } : undefined);
        }
      });
    });
  }
}
