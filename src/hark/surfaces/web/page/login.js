// The login: asked once, whatever is refused meanwhile.

import * as api from "./api.js";
import { find, setText } from "./dom.js";

/** Ask for the token until it is right, then go on. */
export function askLogin(then) {
  const dialog = find("login"), problem = find("login-problem"), field = find("token");
  if (dialog.open) return;
  find("login-form").onsubmit = async (event) => {
    event.preventDefault();
    try {
      await api.login(field.value);
      field.value = "";
      problem.hidden = true;
      dialog.close();
      then();
    } catch (error) {
      setText(problem, error.message);
      problem.hidden = false;
      field.select();
    }
  };
  dialog.oncancel = (event) => event.preventDefault();
  dialog.showModal();
}
