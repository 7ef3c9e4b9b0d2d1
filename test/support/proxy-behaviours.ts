import { setTimeout as sleep } from "node:timers/promises";
import type { Answer, Behaviour } from "./proxy.ts";

/** Lets the write land, and breaks the connection in place of answering. */
export function loseAnswer(): Behaviour {
  return async (exchange) => {
    await exchange.forward();
    exchange.drop();
  };
}

/** Breaks the connection before the request has reached anything. */
export function loseRequest(): Behaviour {
  return ({ drop }) => drop();
}

/** Keeps the request back for a while. */
export function delayRequest(ms: number): Behaviour {
  return async (exchange) => {
    await sleep(ms);
    exchange.reply(await exchange.forward());
  };
}

/** Breaks the connection at once, and lets the request arrive later, when its caller has perhaps given up. */
export function arriveLate(ms: number): Behaviour {
  return async (exchange) => {
    exchange.drop();
    await sleep(ms);
    await exchange.forward();
  };
}

/** Sends the request twice, and answers with what the engine says to the first one. */
export function sendTwice(): Behaviour {
  return async (exchange) => {
    const [answer] = await Promise.all([exchange.forward(), exchange.forward()]);
    exchange.reply(answer);
  };
}

/** Sends a copy of the request some time after its answer. */
export function sendAgain(ms: number): Behaviour {
  return async (exchange) => {
    exchange.reply(await exchange.forward());
    await sleep(ms);
    await exchange.forward();
  };
}

/** Breaks off in the middle of the answer. */
export function cutAnswer(): Behaviour {
  return async (exchange) => {
    const { headers, ...answer } = await exchange.forward();
    const { "content-length": _, ...others } = headers;
    exchange.reply({ ...answer, headers: others, body: answer.body.slice(0, answer.body.length / 2) });
  };
}

/** Lets the write land, and never answers. */
export function hang(): Behaviour {
  return async (exchange) => {
    await exchange.forward();
  };
}

/** Answers late. */
export function delayAnswer(ms: number): Behaviour {
  return async (exchange) => {
    const answer = await exchange.forward();
    await sleep(ms);
    exchange.reply(answer);
  };
}

/** A request that the proxy keeps back. */
export interface HeldRequest extends Behaviour {
  /** Lets it go to the engine, even though its client may have gone away, and gives the engine's answer. */
  letGo(): Promise<Answer>;
}

/** Keeps one request back until it is let go. */
export function hold(): HeldRequest {
  const mayGo = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<Answer>();
  const behaviour: Behaviour = async (exchange) => {
    await mayGo.promise;
    const answer = await exchange.forward();
    exchange.reply(answer);
    answered.resolve(answer);
  };
  return Object.assign(behaviour, {
    letGo: () => {
      mayGo.resolve();
      return answered.promise;
    },
  });
}

/** Answers with an error of the service's, in place of the engine. */
export function failWith(name: string, status = 400): Behaviour {
  const body = JSON.stringify({
    __type: `com.amazonaws.dynamodb.v20120810#${name}`,
    message: "as the test wants it",
  });
  return ({ reply }) =>
    reply({
      status,
      headers: { "content-type": "application/x-amz-json-1.0", date: new Date().toUTCString() },
      body,
    });
}

/** Answers without a Date header. */
export function removeDate(): Behaviour {
  return async (exchange) => {
    const answer = await exchange.forward();
    const { date: _, ...headers } = answer.headers;
    exchange.reply({ ...answer, headers });
  };
}

/** The error's name in an answer; undefined for a success. */
export function errorIn(answer: Answer): string | undefined {
  return answer.status === 200 ? undefined : JSON.parse(answer.body).__type.split("#")[1];
}

/** Lets a batch pass without its first `count` statements, of which it says that they were throttled. */
export function throttleStatements(count: number): Behaviour {
  return async (exchange) => {
    const statements = exchange.request.body.Statements.slice(count);
    const answer = await exchange.forward({ ...exchange.request.body, Statements: statements });
    const { Responses: responses } = JSON.parse(answer.body);
    const throttled = Array(count).fill({
      Error: { Code: "ThrottlingError", Message: "as the test wants it" },
    });
    // The text is another one than the engine sent.
    const { "x-amz-crc32": _, "content-length": __, ...headers } = answer.headers;
    exchange.reply({ ...answer, headers, body: JSON.stringify({ Responses: [...throttled, ...responses] }) });
  };
}
