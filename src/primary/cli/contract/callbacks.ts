/** HTTP address at which one process can send requests to the relay, in addition to stdin and stdout. */
export interface Callback {
  readonly url: string;
  /** Headers that every request needs to identify the process. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Request that a program has posted to its callback. */
export interface CallbackRequest {
  /** Unique among all requests. */
  readonly id: string;
  readonly body: string;
  /** Sends this JSON as the answer, now or later. An empty text only acknowledges the request. */
  answer(json: string): void;
}

/** Handles the callback requests of one process. */
export interface CallbackListener {
  requested(request: CallbackRequest): void;
  /** Called when the process has closed a request before its answer was sent. */
  abandoned(): void;
}

export interface OpenCallback extends Callback {
  /** Rejects later requests, and closes the requests without an answer. */
  close(): void;
}

/** Port at which programs send requests to the relay. */
export interface CallbackPort {
  /** Registers a process. Rejects with `spawn_error` if the port cannot be opened. */
  open(listener: CallbackListener): Promise<OpenCallback>;
  /** Resolves when the port is closed. */
  closePort(): Promise<void>;
}
