const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** The messages of one streaming call, which the server can end early. */
export interface RequestStream extends AsyncIterable<Uint8Array> {
  /** No more messages: a reader that waits learns of it at once. */
  readonly stop: () => void;
}

/**
 * Reads a call's messages one at a time. Not a generator: that could not be ended while it waits for a message, and
 * racing each message against one long-lived promise would keep memory for every message.
 */
export function createRequestStream(messages: AsyncIterable<Uint8Array>): RequestStream {
  const source = messages[Symbol.asyncIterator]();
  let isStopped = false;
  let endWaiting: () => void = () => {};
  const next = (): Promise<IteratorResult<Uint8Array>> => {
    if (isStopped) return Promise.resolve(DONE);
    return new Promise((resolve, reject) => {
      endWaiting = () => resolve(DONE);
      source.next().then(resolve, reject);
    });
  };
  return {
    [Symbol.asyncIterator]: () => ({ next }),
    stop: () => {
      isStopped = true;
      endWaiting();
    },
  };
}
