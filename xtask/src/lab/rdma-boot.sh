# What the RDMA guest must be able to do when it is new.
set -e
for type in siw rxe; do
    rdma_up $type
    rping -s -a $ADDRESS -p 7174 -C 20 -S 4096 > /run/rping 2>&1 &
    until rping -c -a $ADDRESS -p 7174 -C 20 -S 4096; do
        tries=$((tries + 1))
        test $tries -lt 20
        sleep 0.1
    done
    wait
    rdma link delete ${type}0
done
mkdir -p /mnt/share /mnt/data
chmod 777 /mnt/share
for type in siw rxe; do
    rdma_up $type
    ksmbd_up /mnt/share alice secret
    mount -t cifs //$ADDRESS/data /mnt/data -o rdma,vers=3.1.1,username=alice,password=secret
    test "$(queue_pairs $type)" -gt 0
    echo $type > /mnt/data/file
    test "$(cat /mnt/share/file)" = $type
    umount /mnt/data
    ksmbd_down
    rdma link delete ${type}0
done
