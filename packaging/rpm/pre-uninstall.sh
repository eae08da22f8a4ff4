if [ "$1" = 0 ] && [ -d /run/systemd/system ]; then
    systemctl disable --now smbeam.service || :
fi
:
