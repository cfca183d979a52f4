/**
 * What a call of the file system gives: at once, where it was made on the thread (`quick-calls`), or later. Nobody waits for what is
 * there: a save makes four such calls, and a wait costs nearly as much as a call.
 */
export type Answer<Value> = Value | Promise<Value>;

/** Goes on with the answer, at once when it is there. `onError` also takes what is thrown at once. */
export function whenAnswered<Value, Next>(
  ask: () => Answer<Value>,
  next: (value: Value) => Next,
  onError: (error: unknown) => Next,
): Answer<Next> {
  let answer: Answer<Value>;
  try {
    answer = ask();
  } catch (error) {
    return onError(error);
  }
  return answer instanceof Promise ? answer.then(next, onError) : next(answer);
}
