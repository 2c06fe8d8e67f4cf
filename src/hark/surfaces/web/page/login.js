// The login dialog. It opens once, even if several requests are refused at the same time.

import * as api from "./api.js";
import { find, setText } from "./dom.js";

/** Ask for the token until it is right, then call `onSuccess`. */
export function askLogin(onSuccess) {
  const dialog = find("login"), problem = find("login-problem"), field = find("token");
  if (dialog.open) return;
  find("login-form").onsubmit = async (event) => {
    event.preventDefault();
    try {
      await api.logIn(field.value);
      field.value = "";
      problem.hidden = true;
      dialog.close();
      onSuccess();
    } catch (error) {
      setText(problem, error.message);
      problem.hidden = false;
      field.select();
    }
  };
  dialog.oncancel = (event) => event.preventDefault();
  dialog.showModal();
}
