(() => {
'use strict';
const button = document.getElementById('refresh');
if (!button) return;
button.hidden = false;
let timer = setTimeout(() => location.reload(), 1000 * Number(button.dataset.seconds));
button.addEventListener('click', () => {
  if (!timer) return location.reload();
  clearTimeout(timer);
  timer = 0;
  button.textContent = 'Load again';
});
})();
