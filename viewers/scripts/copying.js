// A button beside each digest and id: copies it, or where the browser forbids that selects it.
async function copy(button) {
  const code = button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(code.textContent);
    say(`Copied ${code.textContent}`);
    button.textContent = 'copied';
  } catch {
    getSelection().selectAllChildren(code);
    say('Selected: copy it with the keyboard');
    button.textContent = 'selected';
  }
  setTimeout(() => { button.textContent = 'copy'; }, 1500);
}

function copyable(code) {
  const beside = code.closest('a') ?? code;
  if (!/^[0-9a-f]{16,}$/.test(code.textContent) || beside.nextElementSibling?.matches('.copy')) return;
  const name = `Copy ${code.textContent.slice(0, 8)}`;
  beside.after(make('button', { type: 'button', class: 'copy', 'aria-label': name }, 'copy'));
}

document.addEventListener('click', event => {
  const button = event.target.closest('button.copy');
  if (button) copy(button);
});
